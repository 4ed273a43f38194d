"""Every named mutant: what it breaks, and what is swapped for what."""

from __future__ import annotations

from ork.core import graph, liveness, retry
from ork.core.machine import RunMachine
from ork.objects import documents
from ork.scheduler import lease, observe, statuses, step
from ork.scheduler import runs as owned_runs
from ork.state import refusals
from ork.state.sqlite import commit as sqlite_commit
from ork.state.sqlite import ownership
from ork.state.sqlite.store import SqliteStore
from ork.testing.executor import ScriptedExecutor
from ork.testing.worker import SimulatedWorker
from tests.simulation.mutants import lease_mutations as leases
from tests.simulation.mutants import mutations as m
from tests.simulation.mutants.budget_mutants import BUDGET_MUTANTS
from tests.simulation.mutants.control_mutants import CONTROL_MUTANTS
from tests.simulation.mutants.group_mutants import GROUP_MUTANTS
from tests.simulation.mutants.language_mutants import LANGUAGE_MUTANTS
from tests.simulation.mutants.machine_mutants import MACHINE_MUTANTS
from tests.simulation.mutants.mutations import Mutant
from tests.simulation.mutants.schedule_mutations import SCHEDULE_MUTANTS

try:
    from tests.simulation.mutants.firestore_mutants import FIRESTORE_MUTANTS
except (
    ModuleNotFoundError
):  # google-cloud-firestore is not installed; tests/simulation/test_firestore_worlds.py says so
    FIRESTORE_MUTANTS = ()

MUTANTS = (
    Mutant(
        "launch-before-commit",
        "an attempt is started before it is committed",
        ((step.Scheduler, "_commit", m.launch_before_commit),),
    ),
    Mutant("no-fence", "a stale owner's commit is written", ((sqlite_commit, "_pass_fence", m.write_as_the_owner),)),
    Mutant(
        "epoch-not-compared",
        "an owner's commit of an earlier ownership is written",
        ((sqlite_commit, "_pass_fence", m.write_at_any_epoch),),
    ),
    Mutant(
        "lease-trusted-for-ever",
        "a lease is never doubted",
        ((lease.SchedulerLease, "is_trusted", leases.trust_for_ever),),
    ),
    Mutant(
        "lease-from-the-answer",
        "a renewal is counted from its answer, not from its request",
        ((lease.SchedulerLease, "renew", leases.count_from_the_answer),),
    ),
    Mutant(
        "renewal-not-read",
        "what a renewal answers is not looked at",
        ((lease.SchedulerLease, "renew", leases.take_any_answer),),
    ),
    Mutant(
        "renewal-of-nothing",
        "the store renews leases that it has given up",
        ((SqliteStore, "renew", leases.renew_what_is_gone),),
    ),
    Mutant(
        "wakes-and-goes-on",
        "a frozen owner that wakes after its lease has expired goes on as if it still owned its runs",
        ((step.Scheduler, "_keep_lease", leases.wake_and_go_on),),
    ),
    Mutant(
        "unreadable-gate",
        "a gate that cannot be read is taken for one that was never won",
        ((statuses, "gate_state", m.unreadable_is_not_started),),
    ),
    Mutant(
        "status-of-another-attempt",
        "a status counts whichever attempt it speaks of",
        ((statuses, "checked_status", m.believe_any_attempt),),
    ),
    Mutant("no-gate", "workers start without winning the gate", ((SimulatedWorker, "_win_gate", m.always(True)),)),
    Mutant(
        "gate-left-open",
        "an attempt given up is taken for never started without shutting its gate",
        ((statuses, "close_gate", m.always(True)),),
    ),
    Mutant(
        "complete-by-task",
        "an earlier attempt's status completes the present one",
        ((statuses, "read_statuses", m.any_attempt_will_do),),
    ),
    Mutant(
        "retry-without-confirmed-stop",
        "an attempt counts as over once it was asked to stop",
        ((observe.Observer, "_close_on", m.close_at_once),),
    ),
    Mutant(
        "cancel-not-binding",
        "a run completes over an accepted cancel",
        ((refusals, "ends_unaware_of_cancel", m.cancel_unheard),),
    ),
    Mutant(
        "last-write-wins",
        "an older status counts as news",
        (
            (RunMachine, "_attempt_of", m.ignore_seq),
            (observe.Observer, "_look_at_status", m.believe_old_beats),
            (statuses.Statuses, "newest", m.read_any_seq),
        ),
    ),
    Mutant(
        "restart-unasked",
        "gone is taken for never started without asking the gate",
        ((statuses, "gate_state", m.always(None)),),
    ),
    Mutant(
        "lease-by-wall-clock",
        "leases are judged by the claimer's own clock",
        ((SqliteStore, "claim_runs", m.leases_by_wall_clock),),
    ),
    Mutant(
        "limits-outside-commit",
        "room is looked for first and taken later",
        ((sqlite_commit, "_admit", m.look_then_admit_all),),
    ),
    Mutant(
        "commands-done-early",
        "a command is done with and was not applied",
        ((owned_runs.OwnedRuns, "apply", m.done_unapplied),),
    ),
    Mutant(
        "timer-lost", "a rebuilt machine forgets its retries", ((owned_runs.OwnedRuns, "take_over", m.forget_timers),)
    ),
    Mutant(
        "late-success-lost",
        "what an attempt reached while being given up is not looked at",
        (
            (observe.Observer, "_look_at_status", m.deaf_while_closing),
            (observe.Observer, "_close_gone", m.close_without_last_look),
        ),
    ),
    Mutant("no-release", "a clean stop keeps its runs", ((step.Scheduler, "stop", m.stop_without_release),)),
    Mutant("token-not-checked", "anybody's status is believed", ((documents, "open_signed", m.unsigned_will_do),)),
    Mutant(
        "dispatch-too-early",
        "a task starts when one of those above it has succeeded",
        ((graph, "judge", m.start_too_early),),
    ),
    Mutant("one-retry-more", "retries are counted one too low", ((retry, "should_retry", m.one_try_more),)),
    Mutant("one-retry-less", "retries are counted one too high", ((retry, "should_retry", m.one_try_less),)),
    Mutant("retry-anything", "retry_on is not heeded", ((retry, "should_retry", m.retry_anything),)),
    Mutant("skip-not-propagated", "a task below a failure is not skipped", ((graph, "judge", m.no_skipping),)),
    Mutant(
        "paused-run-launches",
        "a paused run goes on launching",
        ((RunMachine, "offer", m.as_if_not_paused), (RunMachine, "highest_priority", m.as_if_not_paused)),
    ),
    Mutant(
        "silence-unnoticed", "a worker that says nothing is waited for", ((liveness, "check_liveness", m.always(None)),)
    ),
    Mutant(
        "reboot-unnoticed",
        "after a reboot an attempt counts as not yet started",
        ((ScriptedExecutor, "_place_of", m.names_without_boot),),
    ),
    Mutant(
        "unknown-is-gone",
        "an executor out of reach is taken for one that says gone",
        ((ScriptedExecutor, "find", m.unknown_is_gone),),
    ),
    Mutant(
        "never-by-force",
        "a worker that ignores the request is never killed",
        ((ScriptedExecutor, "stop", m.never_by_force),),
    ),
    Mutant(
        "adopt-nothing",
        "a successor does not look after what still runs",
        ((observe.Observer, "adopt", m.adopt_nothing),),
    ),
    Mutant(
        "memory-over-store",
        "after an ambiguous commit memory is believed",
        ((step.Scheduler, "reset_after_store_error", m.keep_what_may_be_lost),),
    ),
    Mutant(
        "expire-the-living",
        "every other scheduler is taken for dead",
        ((lease.SchedulerLease, "check_peers", m.expire_everybody),),
    ),
    Mutant("slots-not-unique", "one due time may give two runs", ((SqliteStore, "create_runs", m.slots_not_unique),)),
    Mutant("active-runs-unbounded", "max_active_runs is not heeded", ((ownership, "that_fit", m.all_fit),)),
    Mutant(
        "end-changed",
        "a failed task becomes a success by a late word",
        (
            (RunMachine, "handle", m.hear_of_what_has_ended),
            (RunMachine, "take", m.change_what_has_ended),
        ),
    ),
    Mutant(
        "run-ends-early", "a run ends with its first success", ((RunMachine, "take", m.end_with_the_first_success),)
    ),
    Mutant(
        "number-used-again",
        "a retry goes by the number of the try before",
        ((RunMachine, "_request", m.use_number_again),),
    ),
    Mutant("alerts-kept-back", "nobody is told of a final failure", ((owned_runs, "RunChanges", m.keep_alerts_back),)),
    Mutant(
        "half-a-commit", "tasks are written without their attempts", ((SqliteStore, "commit", m.leave_out_attempts),)
    ),
    Mutant(
        "commands-reversed", "the last command is applied first", ((ownership, "_commands", m.last_come_first_served),)
    ),
    *CONTROL_MUTANTS,
    *LANGUAGE_MUTANTS,
    *MACHINE_MUTANTS,
    *GROUP_MUTANTS,
    *SCHEDULE_MUTANTS,
    *BUDGET_MUTANTS,
    *FIRESTORE_MUTANTS,
)
