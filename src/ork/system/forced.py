"""Makes Linux look like other systems, for tests: what they lack is removed from the standard library of this process.

So a use of it that does not go through `ork.system` fails in these tests as it would fail there.
"""

from __future__ import annotations

_LACKING = {
    "os": (
        "copy_file_range", "eventfd", "fdatasync", "getresgid", "getresuid", "memfd_create", "pidfd_open", "pipe2",
        "posix_fadvise", "posix_fallocate", "sched_getaffinity", "sched_setaffinity", "setns", "setresgid", "setresuid",
        "splice", "unshare", "waitid", "O_TMPFILE", "O_PATH",
    ),
    "resource": ("prlimit",),
    "select": ("epoll",),
    "signal": ("pidfd_send_signal", "sigtimedwait", "sigwaitinfo"),
    "_signal": ("pidfd_send_signal", "sigtimedwait", "sigwaitinfo"),
    "socket": ("SOCK_CLOEXEC", "SOCK_NONBLOCK", "SOCK_SEQPACKET"),
    "_socket": ("SOCK_CLOEXEC", "SOCK_NONBLOCK", "SOCK_SEQPACKET"),
    "time": ("CLOCK_BOOTTIME",),
}  # fmt: skip
_MODULES = (
    "os",
    "resource",
    "select",
    "time",
    "_signal",
    "_socket",
)  # `signal` and `socket` copy their names from these


def hide_linux() -> None:
    """Remove the names, also from modules that are already loaded."""
    import sys
    from importlib import import_module

    for name in _MODULES:
        import_module(name)
    for name, lacking in _LACKING.items():
        module = sys.modules.get(name)
        for each in lacking:
            if module is not None and hasattr(module, each):
                delattr(module, each)
