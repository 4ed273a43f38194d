"""One frozen `Settings` from flags, the environment, `ork.yaml` and defaults, in that order.

Nobody else reads the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.errors import DefinitionError, UsageError
from ork.objects.regular import read_regular

if TYPE_CHECKING:
    from ork.definition.project import Project
    from ork.model.infra import WorkerConfig
    from ork.model.outbound import OutboundRule
    from ork.model.workflow import Rate
    from ork.secrets.project import ProjectSecrets

PROJECT_FILE = "ork.yaml"
WORKERS_FILE = "workers.yaml"
LOCATIONS_FILE = "locations.yaml"
HOME = ".ork"
LARGEST_FILE = 16 * 1024 * 1024  # of those that a person writes
LEASE_SECONDS = 55.0  # with what it takes to notice: all is taken over within a minute of the last renewal


class Settings(NamedTuple):
    """Where things are, how many may run, and after how long somebody counts as gone."""

    root: str
    store: str
    objects: str
    durability: str = "normal"
    isolation: str = "fork"
    task_user: str | None = None
    script_dir: str | None = None
    env_file: str | None = None
    pools: Mapping[str, int] = MappingProxyType({})
    pool_rates: Mapping[str, Rate] = MappingProxyType({})
    executor_limits: Mapping[str, int] = MappingProxyType({})
    max_workers: int = 8
    lease_seconds: float = LEASE_SECONDS
    renew_seconds: float = LEASE_SECONDS / 2
    heartbeat_seconds: float = 10.0
    stale_seconds: float = 60.0
    start_limit_seconds: float = 300.0
    stop_grace_seconds: float = 10.0
    schedule_grace_seconds: float | None = None  # a time that is later than this was missed
    wake_url: str | None = None
    wake_look_seconds: float = 60.0  # with a wake_url: how soon a tick looks at a running task again,
    wake_look_max_seconds: float = 600.0  # and how rarely at most
    alerts: Mapping[str, Any] = MappingProxyType({})
    traces: bool | None = None  # None: if a collector is named
    trusted_proxies: tuple[str, ...] = ()  # whose X-Forwarded-* headers count
    server: str | None = None  # the API to go through, instead of the store itself
    token: str | None = None
    project: Project | None = None
    environ: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        # The environment holds secrets, and settings may end up in a message.
        from ork.state.urls import without_password

        store = without_password(self.store)
        return f"Settings(root={self.root!r}, store={store!r}, objects={self.objects!r})"

    @property
    def project_or_default(self) -> Project:
        """What is known of the project, also where it has no files of its own."""
        from ork.definition.project import Project

        return self.project or Project(folder=self.root, workers={}, alerts={})

    @property
    def fence_seconds(self) -> float:
        """How long a worker that cannot write its heartbeat lets its task go on; less than the stale limit."""
        return self.stale_seconds * 0.75

    @property
    def workers(self) -> Mapping[str, WorkerConfig]:
        """What workers.yaml says."""
        return (self.project.workers if self.project is not None else None) or {}

    @property
    def pass_env(self) -> tuple[str, ...]:
        """Variables that local tasks inherit besides the usual ones."""
        return self.project.pass_env if self.project is not None else ()

    @property
    def docker_host(self) -> str | None:
        """Where the container engine is, for worker configs that do not say."""
        return self.environ.get("DOCKER_HOST") or None

    @property
    def docker_certificates(self) -> str | None:
        return self.environ.get("DOCKER_CERT_PATH") if self.environ.get("DOCKER_TLS_VERIFY") else None

    @property
    def docker_config(self) -> str:
        """The folder in which `docker login` keeps accounts."""
        return self.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")

    @property
    def home(self) -> str:
        """Ork's own folder in the project."""
        return os.path.join(self.root, HOME)

    @property
    def names_a_collector(self) -> bool:
        """Whether the variables that OpenTelemetry itself reads say where traces go."""
        asks = any(self.environ.get(f"OTEL_EXPORTER_OTLP_{of}ENDPOINT") for of in ("", "TRACES_"))
        return asks and self.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"

    @property
    def forbids_traces(self) -> bool:
        return self.traces is False or self.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"

    @property
    def secrets(self) -> ProjectSecrets:
        """What this project gives to workflows; it holds for workflows from locations and images as well."""
        from ork.secrets.project import ProjectSecrets
        from ork.secrets.providers import Surroundings

        declared = self.project.secrets if self.project is not None else {}
        around, folder = Surroundings(self.root, self.environ), os.path.join(self.home, "secrets")
        return ProjectSecrets(declared, around, self.env_file or os.path.join(self.root, ".env"), folder, read_env_file)

    @property
    def project_with_secrets(self) -> Project:
        """What files are checked against: the project, with the names of secrets that need no declaration."""
        from ork.model.record import replaced

        return replaced(self.project_or_default, found_secrets=self.secrets.found())

    @property
    def outbound(self) -> OutboundRule:
        """What the scheduler may connect to."""
        from ork.model.outbound import OutboundRule, parse_allowed

        allow = self.project.outbound if self.project is not None else ()
        return OutboundRule(tuple(map(parse_allowed, allow)))

    def hook_secret(self, name: str) -> str | None:
        """The secret that signs requests of a hook: Ork's own, which no workflow is given."""
        return self.secrets.own_value(name)


def load_settings(
    *,
    store: str | None = None,
    objects: str | None = None,
    server: str | None = None,
    task_user: str | None = None,
    folder: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings that hold in `folder` (default: the current one). Wrong values are errors that name their source."""
    given = os.environ if environ is None else environ
    root = find_root(folder or os.getcwd())
    project = _read_project(root)
    wished = _wishes(project)
    home = os.path.join(root, HOME)
    lease = _seconds(given, "LEASE", LEASE_SECONDS)
    chosen = store or _value(given, "ORK_STORE") or wished["store"] or f"sqlite:{home}/ork.db"
    return Settings(
        root=root,
        store=chosen,
        objects=objects or given.get("ORK_OBJECTS") or wished["objects"] or _usual_objects(chosen, home),
        durability=_choice(given, "ORK_DURABILITY", ("normal", "full")) or wished["durability"] or "normal",
        isolation=_choice(given, "ORK_ISOLATION", ("fork", "interpreter", "shared")) or wished["isolation"] or "fork",
        task_user=task_user or given.get("ORK_TASK_USER") or (project.task_user if project else None),
        script_dir=_inside(root, given.get("ORK_SCRIPT_DIR") or wished["script_dir"]),
        env_file=_inside(root, given.get("ORK_ENV_FILE") or wished["env_file"]),
        pools=dict(project.pools) if project else {},
        pool_rates=dict(project.pool_rates) if project else {},
        executor_limits=dict(project.executor_limits) if project else {},
        max_workers=_max_workers(given, project),
        lease_seconds=lease,
        renew_seconds=_seconds(given, "RENEW", lease / 2),
        heartbeat_seconds=_seconds(given, "HEARTBEAT", 10.0),
        stale_seconds=_seconds(given, "STALE", 60.0),
        start_limit_seconds=_seconds(given, "START_LIMIT", 300.0),
        stop_grace_seconds=_seconds(given, "STOP_GRACE", 10.0),
        wake_look_seconds=_seconds(given, "WAKE_LOOK", 60.0),
        wake_look_max_seconds=_seconds(given, "WAKE_LOOK_MAX", 600.0),
        schedule_grace_seconds=_number(given, "ORK_SCHEDULE_GRACE_SECONDS", float),
        wake_url=given.get("ORK_WAKE_URL") or (project.wake_url if project else None),
        alerts=dict(project.alerts or {}) if project else {},
        traces=_traces(given, project),
        trusted_proxies=project.trusted_proxies if project else (),
        server=server or given.get("ORK_SERVER") or None,
        token=_value(given, "ORK_TOKEN"),
        project=project,
        environ=given,
    )


def _usual_objects(store: str, home: str) -> str:
    """With a journal where all who use it are on one machine, as they must be with SQLite anyway."""
    return f"{'journal' if store.startswith('sqlite:') else 'file'}:{home}/objects"


def _value(environ: Mapping[str, str], name: str) -> str | None:
    """The variable, or what the file holds that NAME_FILE names: how secrets come into containers and services."""
    path = environ.get(f"{name}_FILE")
    if environ.get(name) or not path:
        return environ.get(name) or None
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}_FILE: cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def find_root(folder: str) -> str:
    """The nearest folder upwards that has a project's files or a `.ork`; else the folder itself.

    Folders above that others may write to, such as /tmp, are never somebody's project.
    """
    start = place = os.path.abspath(folder)
    while not is_project(place) or (place != start and _is_open_to_others(place)):
        above = os.path.dirname(place)
        if above == place:
            return start
        place = above
    return place


def project_folder(file: str) -> str:
    """The project that a workflow file belongs to: the nearest one upwards from the file.

    Without any, it is the current folder if the file is below it, else the file's own folder.
    """
    own = os.path.dirname(os.path.abspath(file))
    found = find_root(own)
    if is_project(found):
        return found
    current = os.getcwd()
    return current if own.startswith(os.path.join(current, "")) else own


def is_project(folder: str) -> bool:
    files = (PROJECT_FILE, WORKERS_FILE, LOCATIONS_FILE)
    return any(os.path.isfile(os.path.join(folder, name)) for name in files) or os.path.isdir(
        os.path.join(folder, HOME)
    )


def _is_open_to_others(folder: str) -> bool:
    facts = os.stat(folder)
    return facts.st_uid != os.getuid() or bool(facts.st_mode & 0o002)


def read_env_file(path: str) -> dict[str, str]:
    """KEY=VALUE lines; `export`, comments and quotes around the value are understood, nothing is expanded."""
    try:
        lines = read_regular(path, LARGEST_FILE).decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    pairs: dict[str, str] = {}
    for text in lines:
        name, equals, value = text.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            pairs[name.strip()] = _unquoted(value.strip())
    return pairs


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value.partition(" #")[0].rstrip()


def _read_project(root: str) -> Project | None:
    """What `ork.yaml` and `workers.yaml` say; None where there is neither."""
    text, workers = (_read_file(os.path.join(root, name)) for name in (PROJECT_FILE, WORKERS_FILE))
    if text is None and workers is None:
        return None
    from ork.definition.project_file import load_project
    from ork.model.record import replaced

    project, problems = load_project(text or b"", os.path.relpath(os.path.join(root, PROJECT_FILE)))
    if problems:
        raise DefinitionError(f"{PROJECT_FILE} has mistakes", problems)
    project = replaced(project, folder=root, workers={})
    return _with_workers(project, workers, root) if workers is not None else project


def _with_workers(project: Project, text: bytes, root: str) -> Project:
    """A mistake in workers.yaml stops only the tasks that need the config it is in."""
    from ork.definition.workers_file import read_workers
    from ork.model.record import replaced

    found = read_workers(text, os.path.relpath(os.path.join(root, WORKERS_FILE)))
    return replaced(project, workers=found.configs, broken_workers=found.broken, worker_problems=found.problems)


def _read_file(path: str) -> bytes | None:
    try:
        return read_regular(path, LARGEST_FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _wishes(project: Project | None) -> dict[str, str | None]:
    """What `ork.yaml` says, or nothing: the file's own room is not even loaded where there is no such file."""
    names = ("store", "objects", "durability", "isolation", "script_dir", "env_file")
    return {name: getattr(project, name, None) for name in names}


def _inside(root: str, path: str | None) -> str | None:
    return os.path.join(root, path) if path else None


def _max_workers(environ: Mapping[str, str], project: Project | None) -> int:
    """How many attempts may run at once: asked for, or twice the processors and at least sixteen."""
    asked = _number(environ, "ORK_MAX_WORKERS", int)
    if asked is not None:
        return int(asked)
    return (project and project.max_workers) or max(16, 2 * (os.cpu_count() or 1))


def _traces(environ: Mapping[str, str], project: Project | None) -> bool | None:
    asked = _choice(environ, "ORK_TRACES", ("on", "off"))
    if asked is not None:
        return asked == "on"
    return project.traces if project else None


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    value = _number(environ, f"ORK_{name}_SECONDS", float)
    return default if value is None else value


def _number(environ: Mapping[str, str], name: str, kind: Callable[[str], float]) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e9:
        raise UsageError(f"{name}={text} is not a positive number")
    return value


def _choice(environ: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    text = environ.get(name)
    if text and text not in choices:
        raise UsageError(f"{name}={text} is none of {', '.join(choices)}")
    return text or None


def wants_debug() -> bool:
    """Tracebacks instead of one-line errors."""
    return os.environ.get("ORK_DEBUG", "") not in ("", "0")
