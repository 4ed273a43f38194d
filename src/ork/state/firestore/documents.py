"""The document of a run, and the rows of its tasks and attempts.

A run's document holds what its owner's commits change: the run's row, ownership, commands, active attempts. Rows of tasks and attempts are
fields of maps, written blind by field mask: `t` for tasks, `a` for attempts. They are in the run's document where a workflow has at
most `INLINE_TASKS` tasks; instances and tasks of wider workflows are in `chunks`, 200 to a document. A row over 1 KiB is in a document of its own
in `big`, and so is the third and any later attempt of a task. Its name has the row's key, the number of the change and a random part: a
former owner whose request arrives late must not write over it.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ork.errors import UsageError
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.run import CommandKind, Run, RunStatus
from ork.model.task import Attempt, Task, TaskStatus
from ork.state.firestore.upgrades import newest_version, upgraded
from ork.state.firestore.values import SERVER_TIME, clean, micros, moment_of
from ork.state.firestore.wire import Doc, Put
from ork.state.lenient import LenientRows
from ork.state.rows import Columns, RowCodec, index_number, index_of, json_text, number_of, text_of

INLINE_TASKS = 50
CHUNK = 200
BIG_ROW = 1024
BIG_PARAMS = 16 * 1024
MANY_NEW = 20  # new rows of one chunk from which on they are written as one compressed field
_LOG = 64
_IN_BIG = "@"
_PARAMS, _STATUS, _CANCEL = 5, 3, 13  # places in a run's columns


def _kept(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment)


def moment_or_none(number: Any) -> datetime | None:
    if number is None:
        return None
    if not isinstance(number, int):
        raise ValueError("not a time")
    return moment_of(number)


codec = RowCodec(_kept, moment_or_none, lambda text: None if text is None else clean(text))
lenient = LenientRows(codec, moment_or_none)


class RunState:
    """A run's document without its rows. `time` is when it was last written."""

    __slots__ = (
        "account", "act", "aside", "before_claim", "columns", "commands", "epoch", "groups", "has_chunks", "id", "key", "log",
        "n", "owner", "params", "reported", "starter", "time", "w",
    )  # fmt: skip

    def __init__(self, id: RunId, columns: list[Any], params: str | None) -> None:
        self.id = id
        self.columns = columns  # as `RowCodec.run_of` reads them, without params
        self.params = params  # JSON, or None: too long for this document
        self.owner: str | None = None
        self.epoch = 0
        self.commands: dict[str, list[Any]] = {}
        self.act: dict[str, str] = {}  # active attempts: executor, pool and short name of their group; see `activate`
        self.groups: dict[str, list[Any]] = {}  # launch groups by their short names: id and parallelism
        self.account: str | None = None  # the account that its slots are held in
        self.aside: list[Any] | None = None  # why and since when it is set aside
        self.n = 0
        self.log: list[list[int]] = []
        self.before_claim: int | None = None  # the time of the last change, if the last write was none
        self.has_chunks = False
        self.key: str | None = None
        self.starter: str | None = None
        self.reported = False
        self.w = ""
        self.time = 0

    @property
    def status(self) -> str:
        return str(self.columns[_STATUS])

    @property
    def workflow(self) -> str:
        return str(self.columns[1])

    @property
    def version(self) -> Any:
        return self.columns[2]

    @property
    def is_final(self) -> bool:
        return self.status in _FINAL

    @property
    def place(self) -> str:
        created = self.columns[6]
        return f"{created if isinstance(created, int) else 0:017d} {self.id}"

    @property
    def changed(self) -> int:
        """When it last changed: a claim is no change."""
        return self.time if self.before_claim is None else self.before_claim

    @property
    def needs_owner(self) -> bool:
        if self.aside is not None:
            return False
        if self.status in (RunStatus.PENDING, RunStatus.RUNNING) or self.commands:
            return True
        return self.status == RunStatus.PAUSED and bool(self.act)

    @property
    def occupies(self) -> bool:
        """It counts against `max_active_runs`."""
        if self.aside is not None or self.is_final:
            return False
        return self.status != RunStatus.PENDING or self.owner is not None

    @property
    def cancel_waits(self) -> bool:
        return any(command[0] == CommandKind.CANCEL for command in self.commands.values())

    def activate(self, attempt: Attempt) -> None:
        """The attempt is active. It takes a slot of its executor and pool, unless it waits for an external job."""
        kind = "" if attempt.waits_for is not None else f"{attempt.executor}\t{attempt.pool or ''}"
        if kind and attempt.group is not None:
            known = {id: name for name, (id, _) in self.groups.items()}
            name = known.get(attempt.group.id) or str(max(map(int, self.groups), default=0) + 1)
            self.groups[name] = [attempt.group.id, attempt.group.parallelism]
            kind += f"\t{name}"
        self.act[attempt_text(attempt.key)] = kind

    @property
    def held(self) -> Counter[str]:
        """The slots its active attempts take, by executor and pool: one each, but a group no more than its parallelism."""
        held, groups = Counter[str](), Counter[str]()
        if self.aside is not None:
            return held
        for kind in self.act.values():
            if kind:
                (groups if kind.count("\t") > 1 else held)[kind] += 1
        for kind, working in groups.items():
            plain, _, name = kind.rpartition("\t")
            held[plain] += min(working, self.groups[name][1])
        return held

    def row(self, params: str | None = None) -> Columns:
        columns = list(self.columns)
        columns[_PARAMS] = self.params if params is None else params
        return (*columns, self.epoch, self.n)

    def listed(self) -> Run:
        return lenient.run(self.row("{}"))

    def set_run(self, run: Run, *, keep_cancel: bool) -> None:
        cancel = self.columns[_CANCEL]
        self.columns = run_columns(run)
        if keep_cancel:
            self.columns[_CANCEL] = cancel

    def begin_change(self) -> None:
        """A change: it gets the next number, and `log` the time of the change before."""
        self.n += 1
        self.log = [*self.log[-_LOG + 1 :], [self.n, self.changed]]
        self.before_claim = None

    def begin_claim(self) -> None:
        """A write that is no change."""
        self.before_claim = self.changed

    def number_behind(self, mark: int) -> int:
        """Rows with a higher number changed after the mark."""
        times = [before for _, before in self.log[1:]] + [self.changed]
        for (number, _), at in zip(self.log, times, strict=True):
            if at > mark:
                return number - 1 if number != self.log[0][0] or len(self.log) < _LOG else 0
        return self.n

    def fields(self) -> dict[str, Any]:
        """Those of the document; the sparse ones are there only while a query is to find the run by them."""
        fields: dict[str, Any] = {
            "v": newest_version(), "id": self.id, "row": json_text(self.columns), "workflow": self.workflow, "status": self.status,
            "place": self.place, "epoch": self.epoch, "n": self.n, "log": json_text(self.log),
        }  # fmt: skip
        above, is_nested, _ = (self.columns[16] or "").partition("/")
        sparse = {
            "owner": self.owner,
            "queue": self.queue if self.owner is None and self.needs_owner else None,
            "asks": True if self.commands else None,
            "live": True if self.occupies else None,
            "busy": True if self.act else None,
            "ended": self.place if self.is_final and self.owner is None and not self.commands else None,
            "above": above if is_nested else None,
            "commands": json_text(self.commands) if self.commands else None,
            "act": json_text(self.act) if self.act else None,
            "groups": json_text(self._used_groups()) if self.groups else None,
            "account": self.account,
            "aside": self.aside,
            "is_aside": True if self.aside is not None else None,
            "c": self.before_claim,
            "chunks": True if self.has_chunks else None,
            "key": self.key,
            "starter": self.starter,
            "reported": True if self.reported else None,
        }
        return fields | {name: value for name, value in sparse.items() if value is not None}

    def _used_groups(self) -> dict[str, list[Any]]:
        used = {kind.rpartition("\t")[2] for kind in self.act.values() if kind.count("\t") > 1}
        self.groups = {name: group for name, group in self.groups.items() if name in used}
        return self.groups

    @property
    def queue(self) -> str:
        """Higher priority first, then older first."""
        return f"{10**9 - int(self.columns[12]):010d} {self.place}"

    def put(self, *, is_change: bool, rows: Rows | None = None) -> Put:
        """Written only if nobody else has written it since it was read."""
        fields = self.fields()
        mask: list[tuple[str, ...]] = [(name,) for name in _MASKED]
        if is_change:
            fields["changed"] = SERVER_TIME
        if rows is not None and (inline := rows.inline):
            fields |= {name: values for name, values in inline.items() if values}
            mask += [(name, key) for name, values in inline.items() for key in values]
        return Put(f"runs/{self.id}", fields, self.time, mask)


_FINAL = frozenset(status.value for status in RunStatus if status.is_final)
_MASKED = (
    "v", "id", "row", "workflow", "status", "place", "epoch", "n", "log", "owner", "queue", "asks", "live", "busy", "ended", "above",
    "commands", "act", "groups", "account", "aside", "is_aside", "c", "chunks", "key", "starter", "reported",
)  # fmt: skip
FACTS = (*_MASKED, "params", "w")
"""The fields of a run's document without the rows."""


def run_columns(run: Run) -> list[Any]:
    return [
        run.id, run.workflow, run.version, run.status.value, run.trigger.value, None, _kept(run.created_at),
        _kept(run.scheduled_for), _kept(run.started_at), _kept(run.finished_at), run.error, run.round, run.priority,
        _kept(run.cancel_requested_at), run.note, run.fresh, run.parent,
    ]  # fmt: skip


def run_state(doc: Doc) -> RunState:
    fields = upgraded(doc.fields)
    state = RunState(RunId(doc.id), json.loads(fields["row"]), fields.get("params"))
    state.owner, state.epoch = fields.get("owner"), fields["epoch"]
    state.commands = json.loads(fields["commands"]) if "commands" in fields else {}
    state.act = json.loads(fields["act"]) if "act" in fields else {}
    state.groups = json.loads(fields["groups"]) if "groups" in fields else {}
    state.account, state.aside = fields.get("account"), fields.get("aside")
    state.n, state.log, state.before_claim = fields["n"], json.loads(fields["log"]), fields.get("c")
    state.has_chunks, state.key = "chunks" in fields, fields.get("key")
    state.starter, state.reported, state.w, state.time = (
        fields.get("starter"),
        "reported" in fields,
        fields.get("w", ""),
        doc.time,
    )
    return state


# ── keys and marks ───────────────────────────────────────────────────────────────────────────────


def task_text(key: TaskKey) -> str:
    return f"{key.name}:{index_number(key.index)}"


def attempt_text(key: AttemptKey) -> str:
    return f"{task_text(key.task)}:{key.number}"


def task_key(text: str) -> TaskKey:
    name, _, index = text.rpartition(":")
    return TaskKey(name, index_of(int(index)))


def attempt_key(run: RunId, text: str) -> AttemptKey:
    task, _, number = text.rpartition(":")
    return AttemptKey(run, task_key(task), int(number))


def mark_text(micros: int) -> str:
    return text_of(micros)


def mark_number(text: str) -> int:
    if len(text) != 16:
        raise UsageError(f"{text[:40]!r} is not a mark or an id of this store.", hint="use one that the server gave")
    return number_of(text)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


class Rows:
    """Rows of one run that a commit writes, sorted into the documents that hold them."""

    def __init__(self, run: RunId, order: Mapping[str, int], number: int) -> None:
        self._run = run
        self._order = order
        self._number = number
        self._place = f"{number}.{secrets.token_hex(3)}"  # of its rows in `big`
        self.inline: dict[str, dict[str, str]] = {"t": {}, "a": {}}
        self._chunks: dict[str, dict[str, dict[str, Any]]] = {}
        self._new: dict[str, dict[str, str]] = {}
        self._big: dict[str, str] = {}

    @property
    def has_chunks(self) -> bool:
        return bool(self._chunks or self._new)

    def add_task(self, task: Task) -> None:
        columns = codec.task_row(self._run, 0, self._number, task)
        text = json_text([self._number, columns[3], columns[2], *columns[4:-1]])
        chunk, key = self._chunk(task.key), task_text(task.key)
        if chunk is not None and task.status is TaskStatus.PENDING and not task.attempt and len(text) <= BIG_ROW:
            self._new.setdefault(chunk, {})[key] = text
        else:
            self._add(chunk, "t", key, text)

    def add_attempt(self, attempt: Attempt) -> None:
        columns = codec.attempt_row(0, attempt)
        group = (
            (None, None, None)
            if attempt.group is None
            else (attempt.group.id, attempt.group.index, attempt.group.parallelism)
        )
        text = json_text([columns[4], columns[2], columns[3], *columns[5:-1], *group])
        key = attempt_text(attempt.key)
        self._add(self._chunk(attempt.key.task), "a", key, text, is_big=attempt.key.number > 2)

    def _add(self, chunk: str | None, name: str, key: str, text: str, *, is_big: bool = False) -> None:
        if is_big or len(text) > BIG_ROW:
            self._big[f"{key}.{self._place}"] = text
            text = _IN_BIG + self._place
        maps = self.inline if chunk is None else self._chunks.setdefault(chunk, {"t": {}, "a": {}})
        maps[name][key] = text

    def _chunk(self, key: TaskKey) -> str | None:
        ordinal = self._order.get(key.name, 0)
        if key.index is not None:
            return f"{ordinal}.{key.index // CHUNK}"
        return None if len(self._order) <= INLINE_TASKS else f"p{ordinal // CHUNK}"

    def big_puts(self) -> list[Put]:
        """Documents that nobody reads before the row that names them is written, so they may be written earlier."""
        return [Put(f"runs/{self._run}/big/{key}", {"row": text}) for key, text in self._big.items()]

    def puts(self) -> list[Put]:
        """The documents beside the run's own, written blind: the run's precondition guards them all."""
        puts = []
        for chunk in dict.fromkeys([*self._chunks, *self._new]):
            maps: dict[str, dict[str, Any]] = self._chunks.get(chunk, {"t": {}, "a": {}})
            new = self._new.get(chunk, {})
            if len(new) >= MANY_NEW:
                maps = {**maps, "b": {str(self._number): zlib.compress(json_text(new).encode())}}
            else:
                maps = {**maps, "t": {**new, **maps["t"]}}
            fields = {"n": self._number, **{name: values for name, values in maps.items() if values}}
            mask = [("n",), *((name, key) for name, values in maps.items() for key in values)]
            puts.append(Put(f"runs/{self._run}/chunks/{chunk}", fields, None, mask))
        return puts


class FoundRows(NamedTuple):
    """Rows as they were read: task columns with the number of their last change, and attempt columns."""

    tasks: dict[str, tuple[int, list[Any]]]
    attempts: dict[str, list[Any]]


def found_rows(docs: Iterable[Doc], big: Mapping[str, str]) -> FoundRows:
    """The newest of each row in a run's document and chunks."""
    tasks: dict[str, tuple[int, list[Any]]] = {}
    attempts: dict[str, list[Any]] = {}
    for doc in docs:
        blobs = doc.fields.get("b", {})
        for number in sorted(blobs, key=int):
            tasks |= {key: _numbered(text) for key, text in json.loads(zlib.decompress(blobs[number])).items()}
        for key, text in doc.fields.get("t", {}).items():
            row = _numbered(big.get(f"{key}.{text[1:]}", "[0]") if text.startswith(_IN_BIG) else text)
            if key not in tasks or tasks[key][0] <= row[0]:
                tasks[key] = row
        for key, text in doc.fields.get("a", {}).items():
            attempts[key] = json.loads(big.get(f"{key}.{text[1:]}", "[]") if text.startswith(_IN_BIG) else text)
    return FoundRows(tasks, attempts)


def in_big(docs: Iterable[Doc], behind: int = 0) -> list[str]:
    """The names of the documents in `big` that rows are in."""
    maps = [doc.fields.get(name, {}) for doc in docs for name in ("t", "a")]
    marked = [(key, text[1:]) for rows in maps for key, text in rows.items() if text[0] == _IN_BIG]
    return [f"{key}.{place}" for key, place in marked if int(place.partition(".")[0]) > behind]


def _numbered(text: str) -> tuple[int, list[Any]]:
    number, *columns = json.loads(text)
    return number, columns
