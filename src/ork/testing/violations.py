"""The invariants by name. A name is what a seed is killed by; the sentence is what was promised."""

from __future__ import annotations

from dataclasses import dataclass

INVARIANTS = {
    "terminal-once": "a task, attempt or run that has ended never changes, save by a person's retry",
    "one-live-process": "user code of one task never runs twice at the same time",
    "starts-once": "user code of one attempt starts at most once",
    "start-committed": "nothing is launched before its attempt is committed",
    "no-start-after-end": "user code never starts after its attempt or its run has ended",
    "no-end-while-alive": "an attempt is not over while its user code is alive",
    "unreachable": "an attempt that nobody can ask about is over once it must have ended itself, or a person says so",
    "one-run-per-slot": "one run per workflow and scheduled time, and per idempotency key",
    "one-fire": "a schedule is moved on only by a scheduler that knew its present time",
    "no-slot-lost": "where all times are caught up, none between two that have runs is without one",
    "durable": "what was acknowledged is what is read later",
    "ends": "once faults stop, every run ends within lease time, stale limit, grace and the work that is left",
    "nothing-left": "when every run has ended no process is alive and no command waits",
    "attempt-numbers": "attempts are numbered 1, 2, 3 … and the next begins only when the last has ended",
    "retry-budget": "at most 1 + retries attempts per round, and not fewer while one is worth it",
    "retry-rule": "only what is worth another try gets one, and not before its time",
    "true-success": "a success is one current attempt that really succeeded, with the output it made",
    "late-success": "a success that was reported is never lost, however late it is seen",
    "true-failure": "an attempt fails with an exit only if its user code did",
    "dispatch-rule": "a task is dispatched only when its rule holds in the same committed state",
    "paused-starts-nothing": "a run that is paused, ended or being cancelled dispatches nothing",
    "held-starts-nothing": "a scheduler that is paused or drains starts nothing and fires nothing; one that drains claims nothing",
    "skip-at-once": "a task whose rule can no longer hold is skipped in the same commit, and no other is",
    "run-state": "a run's state is a function of its tasks' states",
    "cancel-binds": "a run whose cancel was accepted ends as cancelled",
    "one-owner": "a run is taken over only when its owner's lease has run out or was given back",
    "lease-trusted": "no scheduler trusts a lease that the store takes for expired",
    "epoch-fence": "epochs grow, and no commit is accepted under an old one",
    "released": "a scheduler that stopped cleanly owns nothing",
    "limits": "limits are never exceeded and no slot is leaked",
    "max-active-runs": "no more runs of a workflow are under way than it allows",
    "commands": "a command is done with in the commit that applies it, in order, and none is forgotten",
    "one-alert": "exactly one alert for each final failure",
    "seq-grows": "an attempt's sequence number never goes back",
    "replay": "a run's documents, shuffled and doubled, change nothing any more",
    "fan-out": "a task fans out once per round, into exactly what its list or count says in the same commit",
    "group-state": "a fan-out's state is a function of its instances' states, and its failure names one of them",
    "concurrency": "no more instances of a task are active than its concurrency allows",
    "rates": "no rate is exceeded by the store's clock, and none turns a start away that it has room for",
    "conditions": "a task begins only if its conditions hold for the committed values",
    "approval": "an approval is decided once: by a person who was asked, or by its timeout",
    "retry-scope": "a retry of a part changes what it names and what depends on that, and nothing else",
    "cache": "a cached success is an earlier success of the same task, given the same, and never in a fresh run",
    "deferred": "an attempt that waits for a job is not lost for want of a worker",
    "child-ends-first": "a task that is a run of another workflow ends only after that run, and it has but one",
    "loop-lives": "one bad moment never stops a scheduler",
}


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    detail: str
    moment: float

    def __post_init__(self) -> None:
        if self.invariant not in INVARIANTS:
            raise ValueError(f"no invariant is called {self.invariant}")
