"""What Ork asks of other systems with POSIX processes, such as macOS: the same functions as `linux`.

A worker leads a session, and its command line names its attempt: so `ps` and `getsid` find the processes of an attempt. What they
do not find is a descendant that made a session of its own and whose parent has ended. A start time has seconds, and may differ by
one between two looks.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ork.system.linux import Process

NAME = "portable"
PROCESS_LIST = "install `ps`"
HAS_WORKER_POOL = False
HAS_TASK_USERS = False
HAS_JOURNALS = False
HAS_LIMITS = False
CHILDREN_DIE_WITH_PARENT = False
HAS_MEMORY_FILES = False
MAX_FILES = 10_240  # macOS accepts no more

LOOK_SECONDS = 0.2  # between two looks at a process that is not a child of this one
_CLOSE_LOOK_EVERY = 25  # looks: a zombie of another process still answers signals
_SAME_SECONDS = 2
_FOLDERS = ("/bin", "/usr/bin", "/sbin", "/usr/sbin")
_ENVIRON = {"LC_ALL": "C", "TZ": "UTC", "PATH": ":".join(_FOLDERS)}
_COLUMNS = ("pid", "ppid", "stat", "lstart", "command")
_BOOT_NAMES = ("kern.bootsessionuuid", "kernel.random.boot_id")  # of macOS, and of Linux where this module is forced
_MONTHS = {name: at for at, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_WORKER = b"/ork/worker/bootstrap.py "
_INNER = b"ork.worker."  # a module that the bootstrap file runs instead of an attempt

descriptors: set[int] = set()


class _Row:
    """A line of `ps`."""

    __slots__ = ("command", "parent", "pid", "started", "state")

    def __init__(self, line: bytes) -> None:
        words = line.split(None, 8)
        self.pid, self.parent, self.state = int(words[0]), int(words[1]), words[2]
        self.started = words[3:8]
        self.command = words[8] if len(words) > 8 else b""

    @property
    def is_dead(self) -> bool:
        return self.state[:1] in (b"Z", b"X")

    def start_time(self) -> int:
        """Seconds since 1970."""
        _, month, day, clock, year = self.started
        hours, minutes, seconds = (int(part) for part in clock.split(b":"))
        days = _days(int(year), _MONTHS[month], int(day))
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds

    def attempt(self) -> str | None:
        """The attempt in the command line of a worker, and of what it forked: `… bootstrap.py OBJECTS ATTEMPT POSITION`."""
        _, found, arguments = self.command.partition(_WORKER)
        words = arguments.split()
        if not found or len(words) < 3 or arguments.startswith(_INNER):
            return None
        return words[-2].decode("utf-8", "replace")


# ── the machine ──────────────────────────────────────────────────────────────────────────────────


def boot_id() -> str | None:
    for name in _BOOT_NAMES:
        found = _output("sysctl", "-n", name).decode("ascii", "replace").strip()
        if found:
            return found
    started = start_time(1)
    return None if started is None else f"boot-{started}"


def machine_id() -> str:
    if sys.platform == "darwin":
        _, _, rest = _output("ioreg", "-rd1", "-c", "IOPlatformExpertDevice").partition(b'"IOPlatformUUID" = "')
        return rest.partition(b'"')[0].decode("ascii", "replace").replace("-", "").lower()
    for path in ("/etc/machine-id", "/etc/hostid"):
        try:
            with open(path, encoding="ascii") as file:
                return file.read().strip()
        except (OSError, ValueError):
            continue
    return ""


def pid_namespace() -> int | None:
    return 0


def awake_seconds() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)  # on macOS it counts while the machine sleeps


# ── other processes ──────────────────────────────────────────────────────────────────────────────


def start_time(pid: int) -> int | None:
    row = _row(pid)
    return None if row is None or row.is_dead else row.start_time()


def is_same_start(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= _SAME_SECONDS


def is_halted(pid: int) -> bool:
    row = _row(pid)
    return row is None or row.is_dead or row.state[:1] == b"T"


def attempt_of(pid: int, variable: str) -> str | None:  # noqa: ARG001
    row = _row(pid)
    return None if row is None else row.attempt()


def tagged_processes(variable: str) -> list[Process]:  # noqa: ARG001
    rows = [row for row in _rows() if not row.is_dead]
    tags = {row.pid: row.attempt() for row in rows}
    found: list[Process] = []
    for row in rows:
        session = _session(row.pid)
        # What a worker's task executes has another command line, and the worker's session.
        found.append((row.pid, row.parent, row.start_time(), tags[row.pid] or tags.get(session), session))
    return found


def watch_end(pid: int, started: int) -> int | None:
    if not is_same_start(start_time(pid), started):
        return None
    from threading import Thread

    ended, closes = os.pipe()
    try:
        Thread(target=_wait_for_end, args=(pid, started, closes), name=f"ork end of {pid}", daemon=True).start()
    except RuntimeError:
        os.close(ended)
        os.close(closes)
        raise OSError("no thread could be started") from None
    return ended


def _wait_for_end(pid: int, started: int, closes: int) -> None:
    """Close the descriptor when the process has ended, or nobody reads the other end any more."""
    try:
        os.waitpid(pid, 0)  # this thread collects a child
    except ChildProcessError:
        looks = 0
        while not _is_unread(closes) and _answers(pid):
            looks += 1
            if looks % _CLOSE_LOOK_EVERY == 0 and not is_same_start(start_time(pid), started):
                break
            time.sleep(LOOK_SECONDS)
    os.close(closes)


def _is_unread(descriptor: int) -> bool:
    from select import POLLERR, POLLHUP, POLLOUT, poll

    waiter = poll()
    waiter.register(descriptor, POLLOUT)
    return any(event & (POLLERR | POLLHUP) for _, event in waiter.poll(0))


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # of another user
    return True


def send_signal(pid: int, started: int, number: int) -> bool:
    if not is_same_start(start_time(pid), started):
        return False
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


# ── this process and its family ──────────────────────────────────────────────────────────────────


def set_subreaper(wanted: bool) -> bool:  # noqa: ARG001
    return False


def is_subreaper() -> bool:
    return False


def die_with_parent(parent: int) -> None:
    """The worker's guard kills what is left in its session; here the process only exits if its parent is already dead."""
    if os.getppid() != parent:
        os._exit(1)


def survive_parent() -> None:
    return


def has_other_children(known: int) -> bool:
    return bool(set(descendants(b"")) - {known})


def descendants(marker: bytes) -> list[int]:  # noqa: ARG001
    """Living descendants of this process, and the rest of its session if it leads one."""
    me, rows = os.getpid(), [row for row in _rows() if not row.is_dead]
    leads = os.getsid(0) == me
    parents = {row.pid: row.parent for row in rows}
    found = {pid for pid in parents if _is_below(pid, me, parents)}
    if leads:
        found |= {pid for pid in parents if pid != me and _session(pid) == me}
    return sorted(found)


def members_of(session: int) -> list[int]:
    return [row.pid for row in _rows() if not row.is_dead and _session(row.pid) == session]


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def unnamed_file(name: str) -> int:
    path = f"{_temporary_folder()}/ork-{name}-{os.urandom(8).hex()}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    os.set_inheritable(descriptor, True)
    return descriptor


def memory_file(name: str) -> tuple[int, str]:
    raise OSError(f"this system has no memory files ({name})")


def sealed_file(name: str, content: bytes) -> tuple[int, str]:  # noqa: ARG001
    raise OSError(f"this system has no memory files ({name})")


def sync(descriptor: int) -> None:
    import fcntl

    full = getattr(fcntl, "F_FULLFSYNC", None)  # on macOS `fsync` leaves data in the disk's own cache
    if full is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, full)
    except OSError:
        os.fsync(descriptor)  # some disks do not support it


def sync_data(descriptor: int) -> None:
    sync(descriptor)


def with_short_path(folder: str, use: Callable[[str], object]) -> None:
    from hashlib import sha256

    link = f"{_temporary_folder()}/ork-{os.getuid()}-{sha256(os.fsencode(folder)).hexdigest()[:16]}"
    try:
        os.symlink(folder, link)
    except FileExistsError:
        # In a folder that all may write, another user may have made it.
        if os.lstat(link).st_uid != os.getuid() or os.readlink(link) != folder:
            raise OSError(f"{link} is not the link that this user made to {folder}") from None
    use(link)


def appends_are_atomic(folder: str) -> bool:  # noqa: ARG001
    return False  # not known


def limit_files(pid: int, limits: tuple[int, int]) -> None:
    """Child processes keep this process's limit: only they themselves could change it."""


def _temporary_folder() -> str:
    return "/tmp"  # TMPDIR is long on macOS


# ── ps ───────────────────────────────────────────────────────────────────────────────────────────


def _row(pid: int) -> _Row | None:
    rows = _rows("-p", str(pid))
    return rows[0] if rows else None


def _rows(*which: str) -> list[_Row]:
    """Processes; all of them by default. Without the `ps` that lists them."""
    columns = [word for name in _COLUMNS for word in ("-o", f"{name}=")]
    rows = []
    for line in _output("ps", *(which or ("-A",)), "-ww", *columns).splitlines():
        try:
            row = _Row(line)
        except (ValueError, IndexError):
            continue
        if not (row.parent == os.getpid() and row.command.startswith(_listing_prefixes())):
            rows.append(row)
    return rows


def _listing_prefixes() -> tuple[bytes, ...]:
    return tuple(f"{folder}/ps -".encode() for folder in _FOLDERS)


def _output(program: str, *arguments: str) -> bytes:
    """What the program prints; nothing if there is no such program."""
    path = next((f"{folder}/{program}" for folder in _FOLDERS if os.access(f"{folder}/{program}", os.X_OK)), None)
    if path is None:
        return b""
    source, sink = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    actions = ((os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, sink, 1), (os.POSIX_SPAWN_DUP2, null, 2))
    try:
        pid = os.posix_spawn(path, [path, *arguments], _ENVIRON, file_actions=actions)
    except OSError:
        os.close(source)
        return b""
    finally:
        os.close(sink)
        os.close(null)
    with open(source, "rb") as file:
        data = file.read()
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return data  # whoever ignores SIGCHLD has no children to wait for
    return data


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    for _ in range(len(parents)):
        above = parents.get(pid)
        if above is None or above == 0:
            return False
        if above == ancestor:
            return True
        pid = above
    return False


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to this day of the calendar."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
