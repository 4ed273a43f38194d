"""What passing data costs, beside the same by hand: in processor time, which a loaded machine changes little, and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.buckets import new_bucket

pytestmark = pytest.mark.soak
MEGABYTES = int(os.environ.get("ORK_TESTS_FRAME_MEGABYTES", "256"))

JSON = """
import json, sys, time
from ork.objects.local import LocalObjects
from ork.worker.call.arguments import short
from ork.worker.call.environment import Bindings
from ork.worker.call.results import LateValues, result_text, store_output

objects, spec = LocalObjects(sys.argv[1]), {"attempt": "r/make/0/1"}
ratios = []
for _ in range(3):
    times = [time.process_time()]
    rows = [{"id": i, "name": f"customer {i}", "amount": i * 0.25, "city": "Berlin"} for i in range(500_000)]
    times.append(time.process_time())
    with open(sys.argv[1] + ".json", "wb") as file:
        file.write(json.dumps(rows).encode())
    times.append(time.process_time())
    store_output(objects, spec["attempt"], result_text(rows, 1 << 30, LateValues(objects, spec)), 1000)
    times.append(time.process_time())
    del rows
    with open(sys.argv[1] + ".json", "rb") as file:
        json.loads(file.read())
    times.append(time.process_time())
    short(Bindings(objects, 1 << 30, {}, spec).argument({"object": "runs/r/make.0.1.output.json", "path": []}))
    times.append(time.process_time())
    build, dumps, stored, loads, received = (after - before for before, after in zip(times, times[1:]))
    ratios.append(((build + stored) / (build + dumps), received / loads))
print(json.dumps([min(each) for each in zip(*ratios)]))
"""

FRAME = """
import json, os, resource, sys, time
import numpy as np, pandas as pd
from ork.objects.opening import open_values
from ork.worker.data.encode import ValueWriter
from ork.worker.data.inputs import InputValues

how, url, folder, megabytes = sys.argv[1:]
rows = int(megabytes) * 2**20 // 128
os.makedirs(folder, exist_ok=True)
if how.endswith("write"):
    random = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{i}": random.random(rows) for i in range(16)})
if url.startswith("s3:") and how.startswith("hand"):
    import obstore
    from ork.objects.buckets.address import read_address
    from ork.objects.buckets.opening import client_of

    bucket = client_of(read_address(url), forks=False)._store
else:
    bucket = None
begun = time.process_time()
if how == "hand-write":
    frame.to_parquet(f"{folder}/hand.parquet")
    if bucket is not None:
        with open(f"{folder}/hand.parquet", "rb") as file:
            obstore.put(bucket, "hand.parquet", file)
elif how == "hand-read":
    if bucket is not None:
        with open(f"{folder}/hand.parquet", "wb") as file:
            for part in obstore.get(bucket, "hand.parquet").stream():
                file.write(part)
    assert len(pd.read_parquet(f"{folder}/hand.parquet")) == rows
elif how == "ork-write":
    reference = ValueWriter(open_values(url, "normal"), "r/make/0/1").reference_to(frame, "")
    with open(f"{folder}/reference.json", "w") as file:
        json.dump(reference, file)
else:
    with open(f"{folder}/reference.json") as file:
        description = json.load(file)["$ork"]
    assert len(InputValues(open_values(url, "normal"), f"{folder}/inputs", None).incoming(description).converted(pd.DataFrame, "")) == rows
print(json.dumps([time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def measured(code: str, *words: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[float] = json.loads(done.stdout)
    return found


def test_large_json_takes_at_most_half_as_much_again_as_by_hand(tmp_path: Path) -> None:
    returned, received = measured(JSON, str(tmp_path / "objects"))
    assert max(returned, received) <= 1.5, (returned, received)


@pytest.mark.parametrize("store", ["file", "journal", "s3"])
def test_a_large_frame_takes_at_most_a_third_more_than_parquet_by_hand(tmp_path: Path, store: str) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    url = new_bucket("s3") if store == "s3" else f"{store}:{tmp_path}/objects"
    best = []
    for number in range(3):
        folder = str(tmp_path / str(number))
        found = {
            how: measured(FRAME, how, url, folder, str(MEGABYTES))
            for how in ("hand-write", "hand-read", "ork-write", "ork-read")
        }
        by_hand = found["hand-write"][0] + found["hand-read"][0]
        best.append((found["ork-write"][0] + found["ork-read"][0]) / by_hand)
        for step in ("write", "read"):
            more = 5 * (16 << 10) if store == "s3" else 0  # parts on their way
            assert found[f"ork-{step}"][1] <= 1.1 * found[f"hand-{step}"][1] + more, found
    assert min(best) <= 1.3, best
