"""A worker on virtual time. It follows the protocol exactly and writes real documents; only the user code is simulated."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ork.errors import DocumentError, ObjectsError
from ork.executors.executor import LaunchOrder
from ork.objects import documents
from ork.objects.references import output_reference
from ork.testing.faults import STILL_SECONDS, SimulatedProcess
from ork.testing.kernel import Actor
from ork.testing.objects import FlakyObjects
from ork.testing.script import FOR_EVER, Death, Luck, Script, ScriptedEnding

if TYPE_CHECKING:
    from ork.testing.cluster import Cluster, Machine

LAST_WORDS_SECONDS = 300.0
SPEC_LIMIT = 1 << 20


class WorkerProcess(SimulatedProcess):
    """Its deaths and suspensions are part of its luck; only object store faults occur around its I/O."""

    def around_object_io(self) -> None:
        self.check_alive()


class SimulatedWorker:
    """Started for one order on one machine. Several may be started for one attempt; the gate admits one."""

    def __init__(self, cluster: Cluster, machine: Machine, order: LaunchOrder, luck: Luck, number: int) -> None:
        self.attempt = order.attempt
        self.machine = machine
        self.boot = machine.boot
        self.is_alive = True
        self.at_gate = False
        self.user_is_alive = False
        self.frozen_since: float | None = None
        self._cluster = cluster
        self._kernel = cluster.kernel
        self._luck = luck
        self._process = WorkerProcess(f"worker {order.attempt.key} #{number}", cluster.kernel, cluster.faults)
        self._objects = FlakyObjects(cluster.objects, self._process)
        self._name = str(order.attempt.key)
        self._token_hash = documents.token_hash(order.token)
        self._seq = 0
        self._stop_at = FOR_EVER
        self._begun_at = 0.0
        self._silent_until = 0.0
        self._begun_wall = ""
        self._actor: Actor = cluster.kernel.spawn(self._process.name, self._live(), luck.start_seconds)

    # ── control from outside ─────────────────────────────────────────────────────────────────────

    def terminate(self, *, at_once: bool = False) -> None:
        """SIGTERM: it ends its user code gracefully, and kills it after the grace period."""
        if at_once and self.at_gate:
            self._stop_at = self._kernel.time
        elif not self.at_gate and self._luck.stops_after != FOR_EVER:
            self.kill(with_orphans=True)
        elif self._stop_at == FOR_EVER:
            self._stop_at = self._kernel.time + min(self._luck.stops_after, 10.0)
            self._process.wakeup.set()

    def kill(self, *, with_orphans: bool) -> None:
        """SIGKILL, to the worker only or to its whole process tree."""
        if self.is_alive:
            self._kernel.kill(self._actor)
            self._exit(self._luck.orphan_seconds)
        if with_orphans:
            self._end_user_code()

    # ── its life ─────────────────────────────────────────────────────────────────────────────────

    async def _live(self) -> None:
        await self._stand_still()
        spec = await self._read_spec()
        if spec is None or self._luck.death is Death.BEFORE_GATE or not self._win_gate():
            self._exit(0.0)
            return
        self.at_gate = True
        if self._luck.death is Death.AT_GATE:
            self._exit(0.0)
            return
        script = self._cluster.script_of(self.attempt.key, spec["timeout"] is not None)
        self._begun_at, self._begun_wall = self._kernel.time, self._now()
        self.user_is_alive = True
        self._cluster.user_code_started(self)
        if self._luck.is_mistaken:
            self._put_mistaken_status()
        state = await self._work(spec, script)
        if state is None:
            self._exit(self._luck.orphan_seconds)
            return
        self._end_user_code()
        await self._kernel.pause(self._luck.status_seconds)
        if state == "ended" and script.job_seconds is not None:
            self._cluster.begin_job(self.attempt.key, script)
            await self._write_final_status(self._handover(), script)
        else:
            await self._write_final_status(self._final_status(state, spec, script), script)
        self._exit(0.0)

    async def _read_spec(self) -> dict[str, Any] | None:
        for _ in range(5):
            try:
                data = self._objects.read_spec(self._name)
                if data is not None:
                    return documents.open_signed(data, self._token_hash)
            except DocumentError:
                return None
            except ObjectsError:
                pass
            await self._kernel.pause(1.0)
        return None

    def _win_gate(self) -> bool:
        gate = {
            "v": 1, "attempt": str(self.attempt.key), "state": "started", "pid": 1, "start_time": 1,
            "boot_id": str(self.boot), "pid_ns": "0", "host": self.machine.name, "nonce": self._process.name, "at": self._now(),
        }  # fmt: skip
        signed = documents.sign(gate, self._token_hash)
        if self._luck.garbles_gate:
            signed = signed[: len(signed) // 2] + self._process.name.encode()  # no two workers write the same bytes
        try:
            return self._objects.claim_gate(self._name, signed)
        except ObjectsError:
            return False  # it may hold the gate without knowing it: then this attempt never runs

    async def _work(self, spec: dict[str, Any], script: Script) -> str | None:
        """Run until the user code has ended. Returns the state to report, or None if the worker was killed."""
        ends = {
            "ended": self._begun_at + script.seconds,
            "timed_out": self._begun_at + (spec["timeout"] or FOR_EVER),
            "killed": self._begun_at + self._luck.death_after if self._luck.death is Death.WORKING else FOR_EVER,
        }
        silent_at = self._begun_at + self._luck.silent_after
        written_at = next_beat = self._begun_at
        while True:
            has_stood_still = await self._stand_still()
            if has_stood_still or self._kernel.time >= next_beat:
                is_fenced = self._kernel.time - written_at > spec["fence_seconds"]
                written_at = self._kernel.time if self._beat(at_once=is_fenced) else written_at
                next_beat = self._kernel.time + spec["heartbeat_seconds"]
            ends |= {"stopped": self._stop_at, "fenced": written_at + spec["fence_seconds"]}
            end, why_ended = min((at, name) for name, at in ends.items())
            if self._kernel.time >= end:
                return None if why_ended == "killed" else why_ended
            if has_stood_still:
                self._cluster.user_code_went_on(self)
            if self._kernel.time >= silent_at:
                silent_at = FOR_EVER
                self._silent_until = self._kernel.time + self._luck.silent_seconds
                continue
            await self._process.wakeup.wait(max(0.0, min(end, next_beat, silent_at) - self._kernel.time))

    async def _stand_still(self) -> bool:
        """Wait while its machine or the worker itself is suspended. True if it was."""
        while (seconds := self._silent_until - self._kernel.time) > 0 or self._cluster.stands_still(self.machine):
            self.frozen_since = self._kernel.time if self.frozen_since is None else self.frozen_since
            await self._kernel.pause(seconds if seconds > 0 else STILL_SECONDS)
        has_stood_still, self.frozen_since = self.frozen_since is not None, None
        return has_stood_still

    def _beat(self, *, at_once: bool = False) -> bool:
        """Write a heartbeat and read the stop request. False if the task must end."""
        try:
            self._put_status({"state": "running"})
            if self._seq == 1:
                self._cluster.notify_watchers(self.attempt.key)
            if self._objects.read_stop(self._name) is not None:
                self.terminate(at_once=at_once)
        except ObjectsError:
            return False
        return True

    async def _write_final_status(self, words: dict[str, Any], script: Script) -> None:
        if self._luck.death is Death.BEFORE_STATUS:
            return
        is_the_end = words["state"] != "deferred"
        if is_the_end:
            self._cluster.will_report(self.attempt.key, words["state"], script.output)
        if self._luck.death is Death.STATUS_IN_FLIGHT:
            self._kernel.later(self._luck.death_after, lambda: self._put_late(words, script))
            return
        await self._stand_still()
        give_up_at = self._kernel.time + LAST_WORDS_SECONDS
        while self._kernel.time < give_up_at:
            try:
                self._put_output(words, script)
                self._put_status(words)
            except ObjectsError:
                await self._kernel.pause(5.0)
            else:
                if is_the_end and not self._luck.babble:
                    self._cluster.reported(self.attempt.key, words["state"], script.output)
                return

    def _handover(self) -> dict[str, Any]:
        return {"state": "deferred", "jobs": [{"http": f"https://jobs.test/{self.attempt.key}", "every": 10.0}]}

    def _final_status(self, state: str, spec: dict[str, Any], script: Script) -> dict[str, Any]:
        words: dict[str, Any] = {"finished_at": self._now()}
        match state:
            case "timed_out":
                failure = {"kind": "timeout", "message": f"timed out after {spec['timeout']:g} s", "detail": None}
                return words | {"state": "timed_out", "failure": failure}
            case "stopped":
                return words | {
                    "state": "stopped",
                    "failure": {"kind": "cancelled", "message": "stopped", "detail": None},
                }
            case "fenced":
                failure = {"kind": "lost", "message": "could not be heard for 45 s", "detail": None}
                return words | {"state": "failed", "failure": failure}
        if script.ending is ScriptedEnding.SUCCESS:
            return words | {"state": "success", "exit_code": 0, "output": self._output(script)}
        if script.ending is ScriptedEnding.HOPELESS:
            hopeless: dict[str, Any] = {
                "kind": "exception",
                "message": "TaskError: hopeless",
                "detail": {"retry": False},
            }
            return words | {"state": "failed", "exit_code": 1, "failure": hopeless}
        failure = {"kind": "exit", "message": "exit code 3", "detail": None}
        return words | {"state": "failed", "exit_code": 3, "failure": failure}

    def _output(self, script: Script) -> dict[str, Any] | None:
        if script.output is None:
            return None
        if script.output_is_large:
            return {"object": output_reference(self._name), "size": len(script.output)}
        return {"inline": script.output}

    def _put_output(self, words: dict[str, Any], script: Script) -> None:
        if words["state"] == "success" and script.output is not None and script.output_is_large:
            self._objects.put_output(self._name, script.output.encode())

    def _put_late(self, words: dict[str, Any], script: Script) -> None:
        try:
            self._put_output(words, script)
            self._put_status(words)
        except ObjectsError:
            return
        self._cluster.notify_watchers(self.attempt.key)

    def _put_mistaken_status(self) -> None:
        """A reused worker that confuses two attempts."""
        with suppress(ObjectsError):
            self._put_status({"attempt": f"{self.attempt.key.run}/another/0/1", "state": "success"})
            self._cluster.notify_watchers(self.attempt.key)

    def _put_status(self, fields: dict[str, Any]) -> None:
        self._seq += 1  # also if the write fails, since it may have taken effect
        status = {
            "v": 1, "attempt": str(self.attempt.key), "seq": self._seq, "state": "", "at": self._now(),
            "started_at": self._begun_wall, "finished_at": None, "exit_code": None, "failure": None, "output": None,
            "metrics": None,
        } | fields | dict(self._luck.babble)  # fmt: skip
        self._objects.put_status(self._name, documents.sign(status, self._token_hash))

    def _now(self) -> str:
        return self._process.clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z")

    # ── its end ──────────────────────────────────────────────────────────────────────────────────

    def _end_user_code(self) -> None:
        if self.user_is_alive:
            self.user_is_alive = False
            self._cluster.user_code_ended(self)

    def _exit(self, orphan_seconds: float) -> None:
        """The worker is gone; orphaned user code runs for a while and can still be found."""
        self.is_alive = False
        if orphan_seconds and self.user_is_alive:
            self._kernel.later(orphan_seconds, self._end_user_code)
        else:
            self._end_user_code()
        self._cluster.notify_watchers(self.attempt.key)
