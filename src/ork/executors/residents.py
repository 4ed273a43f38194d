"""Workers that stay (see `ork.worker.pool.reusable_worker`), forked from a server of their interpreter: attempts out, news in.

Nothing here is needed: whatever cannot be done in this way, or is not answered, is handed back, to be done without it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Collection, Mapping
from typing import Protocol

from ork.executors.fork_server import ROOM_FOR_MARK
from ork.executors.fork_servers import ForkServers
from ork.executors.resident import ENDS, LARGEST_REQUEST, Kind, Resident, make_door
from ork.executors.together import Together
from ork.model.workflow import Isolation

PATIENCE_SECONDS = 5.0
LONGEST_PATIENCE_SECONDS = 60.0  # with one that is to be made after many others
_MOST_IDLE = 32
QUICK_SECONDS = 0.005
SWIFT_SECONDS = 0.05
_FEW = 5
_REMEMBERED = 20  # attempts, when it is said how long one takes
_LIGHT, _SWIFT = 0.0, 1e-9  # as good as nothing
_WAITED = float("inf")  # a task that waits for something: others get on meanwhile
_PROCESSORS = os.cpu_count() or 1


class _Lately:
    """How long attempts of one kind took, of late; how many of those were not swift."""

    def __init__(self) -> None:
        self.seconds: deque[float] = deque(maxlen=_REMEMBERED)
        self.slow = 0

    def note(self, seconds: float) -> None:
        if len(self.seconds) == _REMEMBERED:
            self.slow -= self.seconds[0] >= SWIFT_SECONDS
        self.seconds.append(seconds)
        self.slow += seconds >= SWIFT_SECONDS


_NOTHING_YET = _Lately()


class Listener(Protocol):
    """Who is told what becomes of an attempt that was asked for."""

    def taken(self, attempt: str, pid: int, start_time: int) -> None:
        """A worker has it, and will say when it is over."""
        ...

    def told(self, attempt: str, status: bytes | None) -> None:
        """There is something to see, perhaps at hand."""
        ...

    def over(self, attempt: str, status: bytes | None) -> None:
        """Its worker is done with it, or gone."""
        ...

    def handed_back(self, attempt: str) -> None:
        """Nobody took it: start it in another way."""
        ...


class Residents:
    """`servers` may make workers for others, too; whoever closes first closes them for all."""

    def __init__(self, listener: Listener, servers: ForkServers) -> None:
        self._listener = listener
        self._servers = servers
        self._idle: dict[Kind, list[Resident]] = {}
        self._busy: dict[str, Resident] = {}  # by attempt
        self._working: dict[Resident, None] = {}  # the same, each once
        self._lately: dict[Kind, _Lately] = {}
        self._unsent: dict[Resident, None] = {}
        self._looks: dict[str, object] = {}  # of the servers of now
        self._renewed: set[str] = set()  # interpreters, since the last flush
        self._timer: asyncio.TimerHandle | None = None
        self._ends = Together(listener.over)

    def ask(self, kind: Kind, attempt: str, request: bytes, spec: bytes = b"") -> bool:
        """True if, after `flush`, a worker for the attempt is on its way, or it will be handed back. A small spec goes
        with the request."""
        if len(request) > LARGEST_REQUEST - 2 or len(attempt.encode()) > ROOM_FOR_MARK:
            return False
        has_room = len(request) + len(spec) <= LARGEST_REQUEST - 2
        data = b"%b\n%b\n" % (request, spec if has_room and b"\n" not in spec else b"")
        if kind[0] not in self._renewed:
            self._renew(kind[0])
        return self._give(kind, attempt, data)

    def flush(self) -> None:
        """Sends what was asked for: whatever is for the same worker wakes it once."""
        self._renewed.clear()
        unsent, self._unsent = self._unsent, {}
        for resident in unsent:
            resident.flush()

    def expect(self, interpreter: str, isolation: str) -> None:
        """Somebody will ask soon: a worker is on its way by then."""
        self._renew(interpreter)
        resident = self._new_one((interpreter, isolation), is_ahead=True)
        if resident is not None:
            self._keep(resident)

    def stop(self, attempt: str) -> bool:
        """Asks whoever has the attempt to end it; False if nobody here has it."""
        resident = self._busy.get(attempt)
        if resident is not None:
            resident.send(b"stop " + attempt.encode())
        return resident is not None

    def close(self) -> None:
        """What was asked for is still done; nobody will hear of it here."""
        if self._timer is not None:
            self._timer.cancel()
        self._ends.forget_timer()
        self._servers.close()
        for resident in [*self._working, *(one for idle in self._idle.values() for one in idle)]:
            resident.let_go()
        self._busy.clear()
        self._working.clear()
        self._idle.clear()

    def _give(self, kind: Kind, attempt: str, request: bytes) -> bool:
        resident = self._quick_one(kind) or self._idle_one(kind) or self._new_one(kind)
        if resident is None:
            return False
        self._busy[attempt] = resident
        self._working[resident] = None
        resident.give(attempt, request)
        self._unsent[resident] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._judge)
        return True

    def _quick_one(self, kind: Kind) -> Resident | None:
        """One that will be done with all it has in a moment. As many as there are processors get on as fast as more, and
        whoever has the next task at hand waits for nobody."""
        enough = self._enough(kind)
        if enough is None:
            return None
        quick, looks = 0, self._looks.get(kind[0])
        with_room: list[Resident] = []
        for resident in self._working:
            if resident.kind == kind and resident.is_quick:
                quick += 1
                if resident.looks is looks and resident.has_room:
                    with_room.append(resident)
        if quick < enough or not with_room:
            return None
        return min(with_room[:enough], key=_how_much)

    def _enough(self, kind: Kind) -> int | None:
        """How many get on as fast as more of them; None if nothing is known of that."""
        lately = self._lately.get(kind, _NOTHING_YET)
        seconds = lately.seconds
        if kind[1] == Isolation.SHARED:
            # Light ones cost a worker less than they cost us. The first ones may have waited for the worker itself.
            if len(seconds) < _FEW or seconds[-1] == _LIGHT:
                return 1
            return _PROCESSORS if seconds[-1] < QUICK_SECONDS or min(seconds) < QUICK_SECONDS else None
        # While a process is made for a task, or is ended after it, another one can work. Of many, one may have had to wait for
        # a busy disk, or for a processor.
        return 2 * _PROCESSORS if seconds and lately.slow * _REMEMBERED <= len(seconds) else None

    def _renew(self, interpreter: str) -> None:
        """Whoever is out of date takes nothing more."""
        self._renewed.add(interpreter)
        looks = self._servers.looks(interpreter)
        if self._looks.get(interpreter) is looks:
            return
        self._looks[interpreter] = looks
        for kind in [kind for kind in self._idle if kind[0] == interpreter]:
            for resident in self._idle.pop(kind):
                resident.let_go()

    def _idle_one(self, kind: Kind) -> Resident | None:
        idle = self._idle.get(kind)
        return idle.pop() if idle else None

    def _new_one(self, kind: Kind, *, is_ahead: bool = False) -> Resident | None:
        server = self._servers.server(kind[0], is_ahead=is_ahead)
        if server is None:
            return None
        try:
            ours, theirs = make_door()
        except OSError:
            return None
        resident = Resident(self, kind, server, ours, self._looks[kind[0]])
        server.make_worker(theirs)
        return resident

    def _judge(self) -> None:
        """One that says nothing for long (halted, perhaps) is done without: the gate lets only one worker through."""
        self._timer = None
        now = time.monotonic()
        silent = [resident for resident in self._working if not resident.has_taken and _give_up_at(resident) <= now]
        for server in {resident.server for resident in silent if not resident.has_spoken}:
            if server.heard_at + PATIENCE_SECONDS <= now:
                server.kill()
        for resident in silent:
            resident.end()
        waiting = [_give_up_at(resident) for resident in self._working if not resident.has_taken]
        if waiting:
            self._timer = asyncio.get_running_loop().call_later(max(0.01, min(waiting) - now), self._judge)

    # ── what residents say ───────────────────────────────────────────────────────────────────────

    def heard(self, resident: Resident, message: bytes) -> None:
        word, name, facts = message.split(b"\t", 2)
        attempt = name.decode()
        if word == b"back":
            self._heard_back(resident, facts.decode().split("\t"))
            return
        if attempt not in resident.given:
            return
        # The first word of all only says that it is there; any but the last one, that this is not over in a moment.
        resident.is_slow = resident.is_slow or (resident.has_spoken and word not in ENDS)
        if not resident.has_spoken:
            self._servers.has_served(resident.server)
        resident.has_taken = resident.has_spoken = True
        if resident.is_slow:
            self._ask_back(resident)
        if word == b"took":
            pid, start_time = facts.split(b" ")
            self._listener.taken(attempt, int(pid), int(start_time))
        elif word == b"news":
            self._listener.told(attempt, facts or None)
        elif word in ENDS:
            self._note_seconds(resident, word)
            del self._busy[attempt]
            resident.done_with(attempt)
            if len(resident.given) > 1 and self._should_share(resident.kind):
                self._ask_back(resident)
            self._keep_if_free(resident)
            self._ends.add(attempt, facts or None)

    def _should_share(self, kind: Kind) -> bool:
        """Whether what a worker has at hand would be done sooner with the help of others."""
        enough = self._enough(kind)
        if enough is None or enough == 1 or kind[1] != Isolation.SHARED:
            return enough is None
        return enough > sum(one.kind == kind for one in self._working)

    def _note_seconds(self, resident: Resident, word: bytes) -> None:
        if resident.kind[1] == Isolation.SHARED:
            # A call that waited for nothing may have waited for a processor: more workers than those would not help it.
            seconds = {b"light": _LIGHT, b"swift": _SWIFT}.get(word, resident.pace)
        else:
            seconds = resident.pace if word == b"swift" else _WAITED
        lately = self._lately.get(resident.kind)
        if lately is None:
            lately = self._lately[resident.kind] = _Lately()
        lately.note(seconds)

    def heard_all(self, resident: Resident) -> None:
        """Whoever has nothing more to do waits for what the ends will bring; others have time."""
        if resident.attempt is None or self._ends.are_many:
            self._ends.tell_now()
        else:
            self._ends.tell_soon()

    def _ask_back(self, resident: Resident) -> None:
        """For what it has not begun, so that others can. Until it has answered it is given nothing."""
        if len(resident.given) > 1 and not resident.is_asked_back:
            resident.is_asked_back = True
            resident.send(b"back")

    def _heard_back(self, resident: Resident, begun: Collection[str]) -> None:
        """It has forgotten all but what it had begun."""
        resident.is_asked_back = False
        self._give_to_others(resident, resident.take_back(begun))
        self._keep_if_free(resident)

    def _keep_if_free(self, resident: Resident) -> None:
        if not resident.given and not resident.is_asked_back:
            self._working.pop(resident, None)
            self._keep(resident)

    def _give_to_others(self, resident: Resident, given: Mapping[str, bytes]) -> None:
        for attempt in given:
            del self._busy[attempt]
        for attempt, request in given.items():
            if not self._give(resident.kind, attempt, request):
                self._listener.handed_back(attempt)
        self.flush()

    def gone(self, resident: Resident) -> None:
        server, attempt = resident.server, resident.attempt
        if attempt is None:
            self._working.pop(resident, None)
            idle = self._idle.get(resident.kind, [])
            if resident in idle:
                idle.remove(resident)
            return
        del self._busy[attempt], self._working[resident]
        self._give_to_others(resident, resident.take_back((attempt,)))
        self._ends.tell_now()
        if resident.has_taken:
            self._listener.over(attempt, None)
            return
        if not server.has_served:
            self._servers.has_failed(server)
        self._listener.handed_back(attempt)

    def _keep(self, resident: Resident) -> None:
        idle = self._idle.setdefault(resident.kind, [])
        if resident.looks is not self._looks.get(resident.kind[0]) or len(idle) >= _MOST_IDLE:
            resident.let_go()
        else:
            idle.append(resident)


def _how_much(resident: Resident) -> int:
    """It has to do."""
    return len(resident.given)


def _give_up_at(resident: Resident) -> float:
    """Of thousands that are asked for at once each waits for those before it, as long as its server makes some."""
    if resident.has_spoken:
        return resident.begun_at + PATIENCE_SECONDS
    most = resident.begun_at + LONGEST_PATIENCE_SECONDS
    return min(most, max(resident.begun_at, resident.server.heard_at) + PATIENCE_SECONDS)
