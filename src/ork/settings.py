"""One immutable `Settings` from flags, the environment, `ork.yaml` and defaults, in that order.

No other module reads the environment.
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
    from ork.model.alarm import AlarmConfig
    from ork.model.infra import WorkerConfig
    from ork.model.outbound import OutboundRule
    from ork.model.workflow import Rate
    from ork.secrets.project import ProjectSecrets

PROJECT_FILE = "ork.yaml"
WORKERS_FILE = "workers.yaml"
LOCATIONS_FILE = "locations.yaml"
HOME = ".ork"
MAX_FILE_BYTES = 16 * 1024 * 1024  # for files written by people
LEASE_SECONDS = 55.0  # with the time to notice, runs are taken over within a minute of the last renewal


class Settings(NamedTuple):
    """Locations, limits and timeouts."""

    root: str
    store: str
    objects: str
    durability: str = "normal"
    isolation: str = "fork"
    preload: tuple[str, ...] | None = None  # None: the modules that tasks were seen to import
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
    schedule_grace_seconds: float | None = None  # a time that fires later than this counts as missed
    wake_url: str | None = None
    wake_look_seconds: float = 60.0  # with a wake_url: first interval at which ticks check a running task
    wake_look_max_seconds: float = 600.0  # the longest interval
    alarm: AlarmConfig | None = None  # None: nobody calls a tick when something is due
    request_seconds: float = 45.0  # `ork serve --on-request`: how long one request works before it hands over
    alerts: Mapping[str, Any] = MappingProxyType({})
    traces: bool | None = None  # None: if a collector is configured
    trusted_proxies: tuple[str, ...] = ()  # their X-Forwarded-* headers are trusted
    server: str | None = None  # the API to use instead of the store
    token: str | None = None
    project: Project | None = None
    environ: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        # The environment contains secrets, and settings may appear in messages.
        from ork.state.urls import without_password

        store = without_password(self.store)
        return f"Settings(root={self.root!r}, store={store!r}, objects={self.objects!r})"

    @property
    def project_or_default(self) -> Project:
        """The project, or a default one if it has no files."""
        from ork.definition.project import Project

        return self.project or Project(folder=self.root, workers={}, alerts={})

    @property
    def fence_seconds(self) -> float:
        """How long a worker that cannot write heartbeats lets its task run; less than the stale limit."""
        return self.stale_seconds * 0.75

    @property
    def workers(self) -> Mapping[str, WorkerConfig]:
        """The worker configs in workers.yaml."""
        return (self.project.workers if self.project is not None else None) or {}

    @property
    def pass_env(self) -> tuple[str, ...]:
        """Additional environment variables that local tasks inherit."""
        return self.project.pass_env if self.project is not None else ()

    @property
    def worker_env(self) -> tuple[str, ...]:
        """The same for local workers, which also need the credentials of a bucket."""
        if "://" not in self.objects:  # a folder
            return self.pass_env
        from ork.objects.buckets.environment import names_to_pass

        return (*self.pass_env, *names_to_pass(self.objects))

    @property
    def docker_host(self) -> str | None:
        """The default container engine of worker configs."""
        return self.environ.get("DOCKER_HOST") or None

    @property
    def docker_certificates(self) -> str | None:
        return self.environ.get("DOCKER_CERT_PATH") if self.environ.get("DOCKER_TLS_VERIFY") else None

    @property
    def docker_config(self) -> str:
        """The folder in which `docker login` stores credentials."""
        return self.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")

    @property
    def home(self) -> str:
        """Ork's own folder in the project."""
        return os.path.join(self.root, HOME)

    @property
    def has_collector(self) -> bool:
        """Whether OpenTelemetry's own variables name a collector."""
        is_set = any(self.environ.get(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT") for part in ("", "TRACES_"))
        return is_set and self.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"

    @property
    def disables_traces(self) -> bool:
        return self.traces is False or self.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"

    @property
    def secrets(self) -> ProjectSecrets:
        """The secrets of the project, also for workflows from locations and images."""
        from ork.secrets.project import ProjectSecrets
        from ork.secrets.providers import ProviderContext

        declared = self.project.secrets if self.project is not None else {}
        around, folder = ProviderContext(self.root, self.environ), os.path.join(self.home, "secrets")
        return ProjectSecrets(declared, around, self.env_file or os.path.join(self.root, ".env"), folder, read_env_file)

    @property
    def project_with_secrets(self) -> Project:
        """The project that definitions are checked against, with the names of secrets that need no declaration."""
        from ork.model.record import replaced

        return replaced(self.project_or_default, found_secrets=self.secrets.found())

    @property
    def outbound(self) -> OutboundRule:
        """The addresses that the scheduler may connect to."""
        from ork.model.outbound import OutboundRule, parse_allowed

        allow = self.project.outbound if self.project is not None else ()
        return OutboundRule(tuple(map(parse_allowed, allow)))

    def hook_secret(self, name: str) -> str | None:
        """The secret that signs requests of a hook. It is Ork's own and not available to workflows."""
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
    """The settings of the project of `folder` (default: the current one). Errors name the source of an invalid value."""
    given = os.environ if environ is None else environ
    root = find_root(folder or os.getcwd())
    project = _read_project(root)
    project_values = _from_project_file(project)
    home = os.path.join(root, HOME)
    lease = _seconds(given, "LEASE", LEASE_SECONDS)
    chosen_objects = objects or given.get("ORK_OBJECTS") or project_values["objects"]
    chosen = store or _value(given, "ORK_STORE") or project_values["store"] or f"sqlite:{home}/ork.db"
    return Settings(
        root=root,
        store=chosen,
        objects=chosen_objects or f"journal:{home}/objects",
        durability=_choice(given, "ORK_DURABILITY", ("normal", "full")) or project_values["durability"] or "normal",
        isolation=_choice(given, "ORK_ISOLATION", ("fork", "interpreter", "shared"))
        or project_values["isolation"]
        or "fork",
        preload=project.preload if project else None,
        task_user=task_user or given.get("ORK_TASK_USER") or (project.task_user if project else None),
        script_dir=_inside(root, given.get("ORK_SCRIPT_DIR") or project_values["script_dir"]),
        env_file=_inside(root, given.get("ORK_ENV_FILE") or project_values["env_file"]),
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
        alarm=_alarm(given, project),
        request_seconds=_seconds(given, "REQUEST", 45.0),
        alerts=dict(project.alerts or {}) if project else {},
        traces=_traces(given, project),
        trusted_proxies=project.trusted_proxies if project else (),
        server=server or given.get("ORK_SERVER") or None,
        token=_value(given, "ORK_TOKEN"),
        project=None
        if project is None
        else _with_objects(_with_cluster(project, given), given.get("ORK_OBJECTS_URL") or chosen_objects),
        environ=given,
    )


def _value(environ: Mapping[str, str], name: str) -> str | None:
    """The variable NAME, or the content of the file that NAME_FILE names, as containers and services pass secrets."""
    path = environ.get(f"{name}_FILE")
    if environ.get(name) or not path:
        return environ.get(name) or None
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}_FILE: cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def find_root(folder: str) -> str:
    """The nearest folder upwards that has project files or `.ork`; else the folder itself.

    Parent folders that other users may write to, such as /tmp, are ignored.
    """
    start = current = os.path.abspath(folder)
    while not is_project(current) or (current != start and _is_writable_by_others(current)):
        parent = os.path.dirname(current)
        if parent == current:
            return start
        current = parent
    return current


def project_folder(file: str) -> str:
    """The project of a workflow file: the nearest one upwards from the file.

    Without one, it is the current folder if the file is below it, else the file's own folder.
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


def _is_writable_by_others(folder: str) -> bool:
    facts = os.stat(folder)
    return facts.st_uid != os.getuid() or bool(facts.st_mode & 0o002)


def read_env_file(path: str) -> dict[str, str]:
    """Parses KEY=VALUE lines, with `export`, comments and quoted values; variables are not expanded."""
    try:
        lines = read_regular(path, MAX_FILE_BYTES).decode("utf-8", "replace").splitlines()
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
    """The project in `ork.yaml` and `workers.yaml`; None if neither exists."""
    text, workers = (_read_file(os.path.join(root, name)) for name in (PROJECT_FILE, WORKERS_FILE))
    if text is None and workers is None:
        return None
    from ork.definition.project_file import load_project
    from ork.model.record import replaced

    project, problems = load_project(text or b"", os.path.relpath(os.path.join(root, PROJECT_FILE)))
    if problems:
        raise DefinitionError(f"{PROJECT_FILE} has errors", problems)
    project = replaced(project, folder=root, workers={})
    return _with_workers(project, workers, root) if workers is not None else project


def _with_objects(project: Project, url: str | None) -> Project:
    """The project with the object store that tasks use: definitions are checked against it. A server that keeps the documents for
    others (ORK_OBJECTS_URL) has them in a folder itself."""
    from ork.model.record import replaced

    return replaced(project, objects=url)


def _with_cluster(project: Project, environ: Mapping[str, str]) -> Project:
    """The project with what a deployment says about Kubernetes: ORK_KUBERNETES_NAMESPACE, _CONTEXT, _IMAGE and _OBJECTS_SECRET."""
    names = ("namespace", "context", "image", "objects_secret")
    given = {name: environ.get(f"ORK_KUBERNETES_{name.upper()}") or None for name in names}
    if not any(given.values()):
        return project
    from ork.model.kubernetes import ClusterDefaults, KubernetesPlace
    from ork.model.record import replaced

    own = project.kubernetes or ClusterDefaults()
    place = KubernetesPlace(given["context"] or own.place.context, given["namespace"] or own.place.namespace)
    made = ClusterDefaults(place, given["image"] or own.image, given["objects_secret"] or own.objects_secret)
    return replaced(project, kubernetes=made)


def _with_workers(project: Project, text: bytes, root: str) -> Project:
    """The project with its worker configs. An error in workers.yaml affects only the tasks that use that config."""
    from ork.definition.workers_file import read_workers
    from ork.model.record import replaced

    found = read_workers(text, os.path.relpath(os.path.join(root, WORKERS_FILE)))
    return replaced(project, workers=found.configs, broken_workers=found.broken, worker_problems=found.problems)


def _read_file(path: str) -> bytes | None:
    try:
        return read_regular(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _from_project_file(project: Project | None) -> dict[str, str | None]:
    """The values in `ork.yaml`. Its package is not imported if there is no such file."""
    names = ("store", "objects", "durability", "isolation", "script_dir", "env_file")
    return {name: getattr(project, name, None) for name in names}


def _inside(root: str, path: str | None) -> str | None:
    return os.path.join(root, path) if path else None


def _max_workers(environ: Mapping[str, str], project: Project | None) -> int:
    """The maximum number of running attempts; the default is twice the processors, at least sixteen."""
    given = _number(environ, "ORK_MAX_WORKERS", int)
    if given is not None:
        return int(given)
    return (project and project.max_workers) or max(16, 2 * (os.cpu_count() or 1))


def _traces(environ: Mapping[str, str], project: Project | None) -> bool | None:
    given = _choice(environ, "ORK_TRACES", ("on", "off"))
    if given is not None:
        return given == "on"
    return project.traces if project else None


def _alarm(environ: Mapping[str, str], project: Project | None) -> AlarmConfig | None:
    """The alarm of ork.yaml, with what the environment replaces; None if there is none."""
    written = project.alarm if project else None
    named = {
        name: environ.get(f"ORK_ALARM_{name.upper()}")
        for name in ("queue", "url", "service_account", "endpoint", "keys_url")
    }
    given = {name: value for name, value in named.items() if value}
    kind = environ.get("ORK_ALARM")
    if not kind and not given:
        return written if written is not None and written.is_on else None
    from ork.model.alarm import CLOUD_TASKS_KEYS, AlarmConfig, AlarmKind, alarm_mistake
    from ork.model.record import replaced

    if kind and kind not in set(AlarmKind):
        raise UsageError(f"ORK_ALARM={kind} is not one of {', '.join(AlarmKind)}", code="ORK851")
    alarm = written or AlarmConfig(AlarmKind.CLOUD_TASKS)
    if kind and kind != alarm.kind:
        alarm = AlarmConfig(AlarmKind(kind))
    if alarm.kind is AlarmKind.CLOUD_TASKS:
        alarm = replaced(alarm, **given)
        for name in CLOUD_TASKS_KEYS:
            mistake = alarm_mistake(name, getattr(alarm, name))
            if mistake is not None:
                raise UsageError(f"ORK_ALARM_{name.upper()}: {mistake[0]}", hint=mistake[1], code="ORK851")
    return alarm if alarm.is_on else None


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
        raise UsageError(f"{name}={text} is not one of {', '.join(choices)}")
    return text or None


def wants_debug() -> bool:
    """Whether to print tracebacks instead of one-line errors."""
    return os.environ.get("ORK_DEBUG", "") not in ("", "0")
