"""Every named mutant of fan-out, conditions, rates, approvals, the cache, deferral and runs within runs."""

from __future__ import annotations

from ork.core import commands, fanout, prepare, transitions
from ork.core.flow import Flow
from ork.core.machine import RunMachine
from ork.scheduler import observe, subworkflow
from ork.scheduler.question_resolver import QuestionResolver
from ork.scheduler.runs import OwnedRuns
from ork.state.sqlite import commit as sqlite_commit
from ork.state.sqlite import connection
from ork.state.sqlite.store import SqliteStore
from ork.testing.poller import ScriptedPoller
from tests.simulation.mutants import language_mutations as m
from tests.simulation.mutants.mutations import Mutant, always

LANGUAGE_MUTANTS = (
    Mutant(
        "concurrency-ignored",
        "all instances of a task run at once",
        ((fanout.Group, "take_slots", m.no_concurrency),),
    ),
    Mutant(
        "instance-ends-the-task",
        "a fan-out ends with its first instance",
        ((fanout.Group, "note_end", m.end_with_one_instance),),
    ),
    Mutant(
        "failed-instance-overlooked",
        "a fan-out succeeds over a failed instance",
        ((fanout.Group, "note_end", m.overlook_failed_instances),),
    ),
    Mutant(
        "expansion-repeated",
        "a task fans out again when its run is taken over",
        ((Flow, "_rebuild_node", m.fan_out_again),),
    ),
    Mutant("item-forgotten", "the last item of a list gets no instance", ((prepare, "_expansion", m.one_item_less),)),
    Mutant("condition-ignored", "`when` is not looked at", ((prepare, "holds", always(True)),)),
    Mutant(
        "retry-resets-siblings",
        "a retry of one instance runs all of them again",
        ((commands, "tasks_to_retry", m.reset_siblings),),
    ),
    Mutant(
        "approval-decided-twice",
        "a second decision replaces the first",
        (
            (RunMachine, "_waits_for_a_person", m.ask_people_again),
            (transitions, "next_task_status", m.end_what_has_ended),
        ),
    ),
    Mutant(
        "approval-for-ever",
        "an approval has no timeout",
        ((Flow, "_set_approval_timer", m.nobody_runs_out_of_time),),
    ),
    Mutant(
        "rate-per-scheduler",
        "each scheduler keeps a rate for itself",
        (
            (SqliteStore, "commit", m.remember_committer),
            (sqlite_commit, "_open_bucket", m.rates_of_their_own),
        ),
    ),
    Mutant(
        "deferred-keeps-its-slot",
        "an attempt that waits for a job counts against limits",
        ((connection, "sql", m.changed_statement("count_active", " AND is_waiting = 0", "")),),
    ),
    Mutant(
        "deferred-forgotten",
        "a successor does not look after attempts that wait for jobs",
        ((observe.Observer, "adopt", m.leave_those_who_wait),),
    ),
    Mutant(
        "deferred-unwatched",
        "nobody asks the jobs that attempts wait for",
        ((observe.Observer, "_watch_all", m.deferred_needs_a_worker),),
    ),
    Mutant(
        "failure-cached",
        "the result of a failed task is taken from the cache",
        (
            (
                connection,
                "sql",
                m.changed_statement("find_cached", "status = 'success'", "status IN ('success', 'failed')"),
            ),
        ),
    ),
    Mutant(
        "cache-key-too-coarse",
        "what a task was given does not count for the cache",
        ((QuestionResolver, "_cache_key", m.same_whatever_it_was_given),),
    ),
    Mutant("fresh-ignored", "a fresh run takes from the cache", ((Flow, "_make_ready", m.never_fresh),)),
    Mutant(
        "next-timer-lost",
        "only the first timer of a run is set",
        ((OwnedRuns, "_set_timer", m.forget_the_next_timer),),
    ),
    Mutant(
        "waiting-takes-room",
        "a run that waits for another takes the room that one needs",
        ((observe.Observer, "waiting_runs", m.nobody_waits),),
    ),
    Mutant(
        "two-children",
        "every try to begin a run within a run begins another",
        ((subworkflow, "child_id", m.another_child_each_time),),
    ),
    Mutant(
        "child-left-behind",
        "a task that waits for a run ends without it",
        ((ScriptedPoller, "stop", m.leave_the_child),),
    ),
)
