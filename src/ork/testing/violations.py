"""The invariants: the name that a violation reports, and the promise as a sentence."""

from __future__ import annotations

from dataclasses import dataclass

INVARIANTS = {
    "terminal-once": "a task, attempt or run that has ended never changes, except by a user's retry",
    "one-live-process": "user code of one task never runs twice at the same time",
    "starts-once": "user code of one attempt starts at most once",
    "start-committed": "nothing is launched before its attempt is committed",
    "no-start-after-end": "user code never starts after its attempt or its run has ended",
    "no-end-while-alive": "an attempt is not over while its user code is alive",
    "unreachable": "an unreachable attempt is over only when it must have ended itself, or a user declares it dead",
    "one-run-per-slot": "one run per workflow and scheduled time, and per idempotency key",
    "one-fire": "a schedule is advanced only by a scheduler that knew its current time",
    "no-slot-lost": "if all missed times are caught up, none between two times with runs is without a run",
    "durable": "what was acknowledged is what is read later",
    "ends": "once faults stop, every run ends within lease time, stale limit, grace and the work that is left",
    "nothing-left": "when every run has ended no process is alive and no command waits",
    "attempt-numbers": "attempts are numbered 1, 2, 3 … and the next begins only when the last has ended",
    "retry-budget": "at most 1 + retries attempts per round, and not fewer while a retry is allowed",
    "retry-rule": "only failures that allow a retry get one, and not before its time",
    "true-success": "a success is one current attempt that really succeeded, with the output it made",
    "late-success": "a success that was reported is never lost, however late it is seen",
    "true-failure": "an attempt fails with an exit only if its user code did",
    "dispatch-rule": "a task is dispatched only when its rule holds in the same committed state",
    "paused-starts-nothing": "a run that is paused, ended or being cancelled dispatches nothing",
    "held-starts-nothing": "a scheduler that is paused or drains starts nothing and fires nothing; one that drains claims nothing",
    "skip-at-once": "a task whose rule can no longer hold is skipped in the same commit, and no other is",
    "run-state": "a run's state is a function of its tasks' states",
    "cancel-binds": "a run whose cancel was accepted ends as cancelled",
    "one-owner": "a run is taken over only when its owner's lease has expired or was released",
    "lease-trusted": "no scheduler trusts a lease that has expired in the store",
    "epoch-fence": "epochs grow, and no commit is accepted under an old one",
    "released": "a scheduler that stopped cleanly owns nothing",
    "limits": "limits are never exceeded and no slot is leaked",
    "group-slots": "no more attempts of a launch group run at the same time than the group holds slots",
    "group-rows": "a launch group is written in one commit: attempts of one task, each with a place of its own",
    "group-waits": "an attempt that waits inside its launch group is not given up while the group makes progress",
    "max-active-runs": "no more runs of a workflow are active than it allows",
    "commands": "a command is marked as done in the commit that applies it, in order, and none is lost",
    "one-alert": "exactly one alert for each final failure",
    "budget": "a run over its cancel budget is cancelled and starts nothing more; people are alerted once",
    "seq-grows": "an attempt's sequence number never goes back",
    "replay": "replaying a finished run's documents, shuffled and doubled, changes nothing",
    "fan-out": "a task fans out once per round, into exactly what its list or count says in the same commit",
    "group-state": "a fan-out's state is a function of its instances' states, and its failure names one of them",
    "concurrency": "no more instances of a task are active than its concurrency allows",
    "rates": "no rate is exceeded by the store's clock, and none rejects a start that it has capacity for",
    "conditions": "a task begins only if its conditions hold for the committed values",
    "approval": "an approval is decided once: by a user who may decide it, or by its timeout",
    "retry-scope": "a retry of a part changes what it names and what depends on that, and nothing else",
    "cache": "a cached success is an earlier success of the same task with the same inputs, and never in a fresh run",
    "deferred": "an attempt that waits for a job does not count as lost because it has no worker",
    "child-ends-first": "a task that is a run of another workflow ends only after that run, and has only one such run",
    "loop-lives": "no single error stops a scheduler",
}


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    detail: str
    moment: float

    def __post_init__(self) -> None:
        if self.invariant not in INVARIANTS:
            raise ValueError(f"no invariant is called {self.invariant}")
