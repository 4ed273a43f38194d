"""Imports a crontab: one workflow for each line. The commands stay as they are, run by the shell that cron would use."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from typing import NamedTuple

from ork.importers.project import ImportedProject, ImportedTask, ImportedWorkflow, Level, SourcePlace, safe_name
from ork.importers.yaml_text import literal

_VARIABLE = re.compile(r"""\s*(["']?)([A-Za-z_]\w*)\1\s*=\s*(.*?)\s*$""")
_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@reboot")
_FIELD = re.compile(r"[\d*,/~LW#?A-Za-z-]+")
_CRON_VARIABLES = (
    "SHELL",
    "MAILTO",
    "MAILFROM",
    "CRON_TZ",
    "RANDOM_DELAY",
    "CONTENT_TYPE",
    "CONTENT_TRANSFER_ENCODING",
)
_RANGE = re.compile(r"(\d*)~(\d*)")
_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_INTERPRETERS = frozenset(
    [
        "sh",
        "bash",
        "zsh",
        "dash",
        "ksh",
        "python",
        "python2",
        "python3",
        "perl",
        "ruby",
        "node",
        "php",
        "java",
        "env",
        "nice",
        "ionice",
        "chronic",
        "timeout",
        "nohup",
        "sudo",
        "time",
        "exec",
        "command",
        "setsid",
        "cd",
        "test",
        "run-parts",
        "systemd-cat",
        "logger",
    ]
)
_USER = re.compile(r"[a-z_][a-z0-9_-]*\$?")


class CrontabOptions(NamedTuple):
    """`timezone` is that of lines without CRON_TZ; `has_user` says whether there is a column with the user."""

    timezone: str = "UTC"
    has_user: bool | None = None  # None: found out from the file's path and lines
    retries: int = 0


@dataclass
class _Line:
    place: SourcePlace
    schedule: str
    user: str | None
    command: str
    stdin: str | None
    variables: dict[str, str]
    comment: str | None


@dataclass
class _Lock:
    """A lock of flock, and the lines that use it."""

    workflows: list[ImportedWorkflow] = field(default_factory=list)


def import_crontab(text: str, file: str, options: CrontabOptions | None = None) -> ImportedProject:
    """The project of a crontab's text."""
    options = options or CrontabOptions()
    project = ImportedProject(source=file, kind="crontab")
    has_user = _has_user_column(text, file) if options.has_user is None else options.has_user
    locks: dict[str, _Lock] = {}
    for line in _lines(text, file, has_user, project):
        _add(line, project, options, locks)
    _share_locks(locks, project)
    return project


def _lines(text: str, file: str, has_user: bool, project: ImportedProject) -> list[_Line]:
    found: list[_Line] = []
    variables: dict[str, str] = {}
    comment: str | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        line, place = raw.strip(), SourcePlace(file, number)
        if not line or line.startswith("#"):
            comment = line.lstrip("# ").strip() or None if line else None
            continue
        variable = _VARIABLE.match(raw)
        if variable is not None and not _is_job(line):
            variables[variable[2]] = _unquoted(variable[3])
        else:
            job = _job(line, place, has_user, dict(variables), comment, project)
            if job is not None:
                found.append(job)
        comment = None
    return found


def _is_job(line: str) -> bool:
    return len(line.split(None, 5)) == 6 and all(_FIELD.fullmatch(word) for word in line.split(None, 5)[:5])


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text


def _job(
    line: str,
    place: SourcePlace,
    has_user: bool,
    variables: dict[str, str],
    comment: str | None,
    project: ImportedProject,
) -> _Line | None:
    words = 1 if line.startswith("@") else 5
    parts = line.removeprefix("-").split(None, words + has_user)
    is_known = not line.startswith("@") or parts[0].lower() in _MACROS
    if len(parts) < words + has_user + 1 or not is_known:
        project.note(Level.PERSON, f"not a crontab line: `{line[:100]}`", place)
        return None
    command, stdin = split_percent(parts[-1])
    user = parts[words] if has_user else None
    return _Line(place, " ".join(parts[:words]), user, command, stdin, variables, comment)


def split_percent(text: str) -> tuple[str, str | None]:
    """The command, and its standard input: an unescaped `%` ends the command, further ones are newlines."""
    parts = re.split(r"(?<!\\)%", text)
    plain = [part.replace("\\%", "%") for part in parts]
    return plain[0].strip(), "\n".join(plain[1:]) if len(plain) > 1 else None


def _has_user_column(text: str, file: str) -> bool:
    """Whether this is a system crontab. Its path decides, else whether every line has a user in the sixth field."""
    path = os.path.abspath(file)
    if path == "/etc/crontab" or os.path.dirname(path) == "/etc/cron.d":
        return True
    jobs = [line.strip() for line in text.split("\n")]
    sixth = [line.split(None, 6)[5:] for line in jobs if not line.startswith(("#", "@")) and _is_job(line)]
    return bool(sixth) and all(len(words) == 2 and _USER.fullmatch(words[0]) and _is_user(words[0]) for words in sixth)


def _is_user(name: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _add(line: _Line, project: ImportedProject, options: CrontabOptions, locks: dict[str, _Lock]) -> None:
    name = project.workflow_name(name_of(line.command))
    workflow = ImportedWorkflow(name, line.place)
    project.workflows.append(workflow)
    if line.comment:
        workflow.keys["description"] = line.comment[:200]
    workflow.keys["schedule"] = _schedule(line, workflow, options)
    if options.retries:
        workflow.keys["defaults"] = {"retries": options.retries}
    command, lock = unlocked(line.command)
    if lock is not None:
        locks.setdefault(lock, _Lock()).workflows.append(workflow)
    task = workflow.add(ImportedTask("run", "crontab line", line.place))
    shell = line.variables.get("SHELL", "/bin/sh")
    task.keys["command"] = [shell, "-c", literal(script_of(command, line.stdin))]
    env = {key: literal(value) for key, value in line.variables.items() if key not in _CRON_VARIABLES}
    if env:
        task.keys["env"] = env
    if line.user is not None:
        _note_user(line.user, task)
    if re.search(r">\s*(?!/dev/null|&)\S", command):
        task.note(Level.INFO, "its output goes to a file; without the redirection `ork logs` shows it")
    _alert(line, project)


def _note_user(user: str, task: ImportedTask) -> None:
    text = f"ran as user `{user}`; now it runs as the user of the scheduler, or as `task_user` in ork.yaml"
    task.note(Level.CHECK, text)


def script_of(command: str, stdin: str | None) -> str:
    """The script for the shell: in the home folder like cron, with the text after `%` as standard input."""
    begin = "" if re.match(r"cd\s+[/~]", command) else 'cd "$HOME" || exit 1\n'
    if stdin is None:
        return f"{begin}{command}"
    end = "END"
    while end in stdin.split("\n"):
        end += "_"
    return f"{begin}{{\n{command}\n}} <<'{end}'\n{stdin}\n{end}\n"


def unlocked(command: str) -> tuple[str, str | None]:
    """The command without `flock`, and its lock. Unchanged if flock is used in another way."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command, None
    if not words or os.path.basename(words[0]) != "flock":
        return command, None
    match = re.match(
        r"(?:\S*/)?flock((?:\s+(?:-[nxeusoF]+|--nonblock|--nb|--exclusive|-[wE]\s*\d+|--timeout[= ]\d+))*)\s+([^\s'\"-]\S*)\s+(.+)$",
        command,
        re.S,
    )
    if match is None or match[2].isdigit():  # a number is a file that the shell has opened
        return command, None
    lock, rest = match[2], match[3].strip()
    shell = re.match(r"(?:-c|--command)\s+(.+)$", rest, re.S)
    if shell is None:
        return (rest, lock) if not rest.startswith("-") else (command, None)
    try:
        inner = shlex.split(shell[1])
    except ValueError:
        return command, None
    return (inner[0], lock) if len(inner) == 1 else (command, None)


def _share_locks(locks: dict[str, _Lock], project: ImportedProject) -> None:
    """A lock of one line becomes `max_active_runs: 1`, a lock of several a pool with one slot."""
    for path, lock in locks.items():
        for workflow in lock.workflows:
            workflow.keys["max_active_runs"] = 1
            text = f"`flock {path}` became `max_active_runs: 1`: a run that is due meanwhile waits, and is not skipped"
            workflow.note(Level.INFO, text)
        if len(lock.workflows) > 1:
            pool = safe_name(os.path.basename(path).removesuffix(".lock"), "lock")
            project.pools[pool] = 1
            for workflow in lock.workflows:
                workflow.tasks["run"].keys["pool"] = pool


def _schedule(line: _Line, workflow: ImportedWorkflow, options: CrontabOptions) -> dict[str, str] | str | None:
    if line.schedule.lower() == "@reboot":
        text = "`@reboot` has no schedule here: start it with `ork trigger` from a unit of systemd"
        workflow.note(Level.PERSON, text)
        return None
    cron = line.schedule
    if "~" in cron:
        cron = " ".join(_without_random(word, limits) for word, limits in zip(cron.split(), _LIMITS, strict=False))
        workflow.note(Level.CHECK, f"the random time `{line.schedule}` became `{cron}`; `jitter` spreads times")
    zone = line.variables.get("CRON_TZ", options.timezone)
    if "RANDOM_DELAY" in line.variables:
        workflow.note(Level.CHECK, f"RANDOM_DELAY={line.variables['RANDOM_DELAY']}: use `jitter` in the schedule")
    return cron if zone == "UTC" else {"cron": cron, "timezone": zone}


def _without_random(word: str, limits: tuple[int, int]) -> str:
    def middle(match: re.Match[str]) -> str:
        low, high = int(match[1] or limits[0]), int(match[2] or limits[1])
        return str((low + high) // 2)

    return _RANGE.sub(middle, word)


def _alert(line: _Line, project: ImportedProject) -> None:
    """MAILTO becomes a mail through the server of this machine, as cron sends it."""
    address = line.variables.get("MAILTO", "")
    if not address:
        return
    to = [each.strip() for each in address.split(",") if each.strip()]
    project.mail_alert(project.workflows[-1], to, f"MAILTO={address}", line.place, line.variables.get("MAILFROM"))


def name_of(command: str) -> str:
    """A name from the command: the script or program that does the work."""
    try:
        words = shlex.split(re.sub(r"(&&|\|\||[;|])", r" \1 ", unlocked(command)[0]))
    except ValueError:
        words = command.split()
    for index, word in enumerate(words):
        if word in (">", ">>", "2>&1", "||"):
            break
        if index > 1 and words[index - 1] == "-c" and any(character.isspace() for character in word):
            shell = os.path.basename(words[index - 2])
            return name_of(word) if shell.endswith("sh") else safe_name(shell, "job")
        base = os.path.basename(word.rstrip("/"))
        if _does_the_work(words, index, base):
            is_module = index > 0 and words[index - 1] == "-m"
            return safe_name(base if is_module else os.path.splitext(base)[0], "job")
    return safe_name(os.path.basename(words[0]) if words else "", "job")


def _does_the_work(words: list[str], index: int, base: str) -> bool:
    """Whether the word is a program or script, not an interpreter, an option or its value."""
    word = words[index]
    if not base or word[0] in "-$&><|;([!'\"" or base in _INTERPRETERS or base.isdigit() or "=" in word:
        return False
    is_script = "." in base and not base.startswith(".") and index > 0
    return not _is_folder_of_cd(words, index) and (is_script or not _is_option_value(words, index))


def _is_folder_of_cd(words: list[str], index: int) -> bool:
    return index > 0 and words[index - 1] == "cd"


def _is_option_value(words: list[str], index: int) -> bool:
    """Whether the word is the value of an option, or a duration for `timeout` and `nice`."""
    before = words[index - 1] if index else ""
    is_duration = re.fullmatch(r"\d+[smhd]?", words[index]) is not None
    return (before.startswith("-") and len(before) == 2 and before not in ("-m", "-c", "-n")) or is_duration
