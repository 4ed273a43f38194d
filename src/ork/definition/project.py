"""A project: the content of `ork.yaml` and `workers.yaml`. Separate from the parsers, so that a project without files
does not load them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ork.model.record import Record, made

if TYPE_CHECKING:
    from ork.definition.custom import CustomExecutor
    from ork.definition.problems import Problem
    from ork.model.alarm import AlarmConfig
    from ork.model.cloud_run import Place
    from ork.model.infra import Where, WorkerConfig
    from ork.model.kubernetes import ClusterDefaults
    from ork.model.publishing import PublishConfig
    from ork.model.secret import SecretDeclaration
    from ork.model.sign_in import OidcConfig
    from ork.model.workflow import Isolation, Rate


class Durability(StrEnum):
    """What a committed write survives: the death of all processes, or a power failure too."""

    NORMAL = "normal"
    FULL = "full"


class Project(Record):
    folder: str | None = None  # absolute; None if unknown
    pythonpath: tuple[str, ...] = ()  # further folders to import from, relative to the project's
    codecs: dict[str, str] = made(default_factory=dict)  # classes that store values, by name
    script_dir: str | None = None
    env_file: str | None = None
    pools: dict[str, int] = made(default_factory=dict)
    pool_rates: dict[str, Rate] = made(default_factory=dict)
    max_workers: int | None = None
    executor_limits: dict[str, int] = made(default_factory=dict)
    executors: dict[str, CustomExecutor] = made(default_factory=dict)
    durability: Durability = Durability.NORMAL
    isolation: Isolation | None = None
    preload: tuple[str, ...] | None = None  # None: the modules that tasks were seen to import
    store: str | None = None
    objects: str | None = None  # in settings: of the environment, if that names one
    alerts: Mapping[str, Any] | None = None  # None if not read
    secrets: dict[str, SecretDeclaration] = made(default_factory=dict)
    outbound: tuple[str, ...] = ()  # non-public addresses that the scheduler may connect to
    wake_url: str | None = None
    alarm: AlarmConfig | None = None
    traces: bool | None = None
    trusted_proxies: tuple[str, ...] = ()
    ui: PublishConfig | None = None  # None: nothing is published
    sign_in: OidcConfig | None = None  # None: with tokens only
    task_user: str | None = None
    pass_env: tuple[str, ...] = ()
    default_where: Where | None = None  # of worker configs without `where`
    gcp: Place | None = None
    kubernetes: ClusterDefaults | None = None
    prices: str | None = None  # a price file, relative to the folder
    workers: Mapping[str, WorkerConfig] | None = None  # from workers.yaml; None if not read
    broken_workers: Mapping[str, str] = made(default_factory=dict)  # see `ork.definition.workers_file.Workers`
    worker_problems: tuple[Problem, ...] = ()
    found_secrets: frozenset[str] | None = None  # names in `.env` and `.ork/secrets`; None if not read
