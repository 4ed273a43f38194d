"""A worker that stays begins each attempt where it is told to, and finds a gate that was won before."""

from __future__ import annotations

from pathlib import Path

from ork.objects.documents import Signer, sign, token_hash
from ork.objects.opening import open_objects
from ork.worker.supervise.claim import read_spec, win_gate

SECRET = token_hash("token")


def test_who_began_late_for_one_attempt_still_loses_the_gate_of_another(tmp_path: Path) -> None:
    url = f"journal:{tmp_path}"
    scheduler, spec = open_objects(url), sign({"durability": "normal"}, SECRET)
    assert scheduler.put_if_absent("runs/a/taken.0.1.gate.json", b"by somebody else")
    for name, is_ours in (("free", True), ("taken", False)):
        attempt = f"a/{name}/0/1"
        (position,) = scheduler.put_specs([(attempt, spec)])
        assert (position > 0) == is_ours
        objects, _ = read_spec(url, attempt, SECRET, position, spec)
        assert win_gate(objects, attempt, Signer(SECRET), '"pid":1') == is_ours
