"""The result of a chaos run, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ork.chaos.verdict import Breach, Harm, Kill
from ork.model.record import Record
from ork.model.task import Attempt

MOST_SHOWN = 10
_PROMISED = (Harm.LOST, Harm.DOUBLED, Harm.OVERLAPPING)


class Report(Record):
    """`folder` is the sandbox if it was kept, else None. `asked`: how many kills were wanted."""

    seed: int
    database: str
    is_real: bool
    asked: int
    kills: tuple[Kill, ...]
    runs: dict[str, int]
    attempts: dict[str, int]
    starts: int
    breaches: tuple[Breach, ...]
    notes: tuple[str, ...]
    seconds: float
    folder: str | None = None

    @property
    def is_complete(self) -> bool:
        return len(self.kills) >= self.asked

    @property
    def harms(self) -> Counter[Harm]:
        return Counter(breach.harm for breach in self.breaches)


def report_json(report: Report) -> dict[str, Any]:
    return {
        "ok": not report.breaches,
        "complete": report.is_complete,
        "seed": report.seed,
        "database": report.database,
        "real": report.is_real,
        "seconds": round(report.seconds, 1),
        "kills": dict(Counter(kill.kind for kill in report.kills)),
        "kills_in_all": len(report.kills),
        "runs": report.runs,
        "attempts": report.attempts,
        "starts": report.starts,
        **{str(harm): report.harms[harm] for harm in Harm},
        "breaches": [each._asdict() for each in report.breaches],
        "notes": list(report.notes),
        "sandbox": report.folder,
    }


def report_lines(report: Report) -> list[str]:
    """The summary for a person: what was killed, what ran, and whether every promise held."""
    from ork.status.formatting import count, duration

    kills = Counter(kill.kind for kill in report.kills)
    lines = [
        f"kills      {len(report.kills):,} in {duration(report.seconds)}: {_listed(kills)}",
        f"runs       {sum(report.runs.values()):,}: {_listed(report.runs)}",
        f"attempts   {sum(report.attempts.values()):,}: {_listed(report.attempts)}; {report.starts:,} starts in the ledger",
        "",
        "           " + "   ".join(f"{harm} {report.harms[harm]:,}" for harm in _PROMISED),
    ]
    others = [harm for harm in Harm if harm not in _PROMISED and report.harms[harm]]
    lines += ["           " + "   ".join(f"{harm} {report.harms[harm]:,}" for harm in others)] if others else []
    if not report.breaches:
        held = "✓ every promise held"
        missing = "" if report.is_complete else f", for {len(report.kills):,} of {report.asked:,} kills"
        kept = [f"The sandbox is kept in {report.folder}"] if report.folder is not None else []
        return [*lines, "", held + missing, *kept]
    lines += ["", f"✗ {count(len(report.breaches), 'promise')} broken (seed {report.seed})"]
    lines += [f"  {each.harm}: {each.subject}: {each.evidence}" for each in report.breaches[:MOST_SHOWN]]
    if len(report.breaches) > MOST_SHOWN:
        lines.append(f"  … and {len(report.breaches) - MOST_SHOWN:,} more in breaches.txt")
    if report.folder is not None:
        lines += [
            "",
            f"The sandbox is kept in {report.folder}: evidence in breaches.txt, attempts.txt, ledger/ledger, schedulers.log",
        ]
    return lines


def evidence(kills: Sequence[Kill], found: Sequence[Breach]) -> str:
    """The text of breaches.txt: every breach, then every kill in its order."""
    lines = [f"{each.harm}\t{each.subject}\t{each.evidence}" for each in found]
    lines += [
        f"kill\t{kill.at.isoformat()}\t{kill.kind}\t{kill.what}\t{' '.join(sorted(kill.attempts))}" for kill in kills
    ]
    return "\n".join(lines) + "\n"


def attempt_lines(attempts: Sequence[Attempt]) -> str:
    """The text of attempts.txt: what Ork recorded of each attempt."""
    return "".join(
        f"{each.key}\t{each.status}\t{each.dispatched_at.isoformat()}\t{each.finished_at and each.finished_at.isoformat()}\t"
        f"{each.exit_code}\t{each.failure.message if each.failure is not None else ''}\n"
        for each in attempts
    )


def _listed(numbers: dict[str, int] | Counter[str]) -> str:
    return (
        ", ".join(f"{number:,} {name}" for name, number in sorted(numbers.items(), key=lambda pair: -pair[1])) or "none"
    )
