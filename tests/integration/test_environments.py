"""A task's environment is built by its worker, once per content, and the task runs in it with nothing of ours."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.workshop import Workshop, in_workshop

# Stands for uv: makes the environment without pip, and "installs" a module that tells what was asked for.
FAKE_UV = f"""#!{sys.executable}
import pathlib, sys, venv
def log(text):
    with open({{ledger!r}}, "a") as file:
        file.write(text + "\\n")
if sys.argv[1] == "venv":
    log("venv")
    venv.create(sys.argv[-1], symlinks=True)
else:
    wanted = pathlib.Path(sys.argv[-1]).read_text().split()
    if "broken" in wanted:
        print("error: No solution found")
        sys.exit(1)
    if "slow" in wanted:
        log("slow")
        import time
        time.sleep(600)
    folder = pathlib.Path(sys.argv[sys.argv.index("--python") + 1]).parents[1]
    (next(folder.glob("lib/python*")) / "site-packages" / "wanted.py").write_text(f"NAMES = {{{{wanted!r}}}}")
"""

TASKS = """
import os, sys
def main():
    import wanted
    try:
        import click
        foreign = True
    except ImportError:
        foreign = False
    return {"names": wanted.NAMES, "prefix": sys.prefix, "foreign": foreign,
            "on_path": os.environ["PATH"].startswith(os.environ["VIRTUAL_ENV"] + "/bin:")}
"""


def with_fake_uv(shop: Workshop) -> dict[str, Any]:
    """What specs need: the builds' folder, and a PATH on which uv is found first."""
    programs = shop.root.parent / "programs"
    programs.mkdir()
    (programs / "uv").write_text(FAKE_UV.format(ledger=str(shop.root.parent / "ledger")))
    (programs / "uv").chmod(0o755)
    shop.write("tasks.py", TASKS)
    path = f"{programs}:{os.environ['PATH']}"
    return {"builds": str(shop.root.parent / "builds"), "env": {"PATH": {"value": path}}}


def output_of(status: dict[str, Any]) -> Any:
    assert status["state"] == "success", status
    return json.loads(status["output"]["inline"])


@in_workshop
async def test_a_function_runs_in_the_environment_and_sees_nothing_else(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    common["env"] = {}  # PATH as the task sees it is what is looked at
    os_path = os.environ["PATH"]
    os.environ["PATH"] = f"{shop.root.parent / 'programs'}:{os_path}"
    try:
        found = output_of(await shop.run(environment={"requirements": ["pandas"]}, **common))
    finally:
        os.environ["PATH"] = os_path
    assert found["names"] == ["pandas"]
    assert found["prefix"].startswith(common["builds"] + "/environments/")
    assert (found["foreign"], found["on_path"]) == (False, True)


@in_workshop
async def test_equal_requirements_are_built_once_however_many_begin_together(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    attempts = [shop.attempt(f"task{number}") for number in range(4)]
    for attempt in attempts:
        assert await shop.start(attempt, environment={"requirements": ["pandas"]}, **common) == []
    places = {output_of(await shop.ended(attempt))["prefix"] for attempt in attempts}
    assert len(places) == 1
    assert (shop.root.parent / "ledger").read_text() == "venv\n"
    other = output_of(await shop.run(shop.attempt("other"), environment={"requirements": ["rich"]}, **common))
    assert other["prefix"] not in places


@in_workshop
async def test_requirements_come_from_files_and_from_the_scripts_header(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    shop.write("requirements.txt", "numpy\n")
    found = output_of(await shop.run(environment={"requirements_file": "requirements.txt"}, **common))
    assert found["names"] == ["numpy"]
    shop.write("tasks.py", '# /// script\n# dependencies = ["rich"]\n# ///\n' + TASKS)
    again = output_of(await shop.run(shop.attempt("script"), environment={"script": True}, **common))
    assert again["names"] == ["rich"]


@in_workshop
async def test_a_change_in_an_included_file_makes_another_environment(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    shop.write("requirements.txt", "numpy\n-r more/extra.txt\n")
    places = set()
    for number, line in enumerate(("a", "b", "a")):
        shop.write("more/extra.txt", line)
        attempt = shop.attempt(f"task{number}")
        places.add(
            output_of(await shop.run(attempt, environment={"requirements_file": "requirements.txt"}, **common))[
                "prefix"
            ]
        )
    assert len(places) == 2


@in_workshop
async def test_commands_find_the_programs_of_the_environment_first(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    del common["env"]
    venv.create(shop.root / "env", symlinks=True)
    shop.write("show.py", "import json, sys; print(json.dumps(sys.prefix))")
    for argv in (["python", "show.py"], ["./show.py"]):
        attempt = shop.attempt(f"task{len(shop.made)}")
        status = await shop.run(attempt, argv=argv, environment={"path": "env"}, **common)
        assert output_of(status) == str(shop.root / "env")


@in_workshop
async def test_a_folder_that_is_no_environment_is_told_and_not_tried_again(shop: Workshop) -> None:
    status = await shop.run(environment={"path": "nowhere"}, builds=str(shop.root.parent / "builds"))
    assert (status["state"], status["failure"]["kind"]) == ("failed", "start")
    assert "nowhere" in status["failure"]["message"]
    assert status["failure"]["detail"]["retry"] is False


@in_workshop
async def test_a_build_that_fails_is_told_in_the_installers_words_and_leaves_nothing(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    for number in range(2):
        attempt = shop.attempt("work", number + 1)
        status = await shop.run(attempt, environment={"requirements": ["broken"]}, **common)
        assert (status["state"], status["failure"]["kind"]) == ("failed", "start")
        assert status["failure"]["message"] == "the environment could not be built: No solution found"
        assert "error: No solution found" in status["failure"]["detail"]["tail"]
    assert not [path for path in (shop.root.parent / "builds/environments").iterdir() if path.is_dir()]


@in_workshop
async def test_a_build_has_heartbeats_does_not_use_up_the_timeout_and_can_be_stopped(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    attempt = shop.attempt()
    assert await shop.start(attempt, environment={"requirements": ["slow"]}, timeout=0.3, **common) == []
    first = await shop.running(attempt)
    assert first["preparing"] is True
    async with asyncio.timeout(30):
        while (shop.status(attempt) or first)["seq"] < first["seq"] + 3:  # three more beats: longer than the timeout
            await asyncio.sleep(0.05)
    await shop.executor.stop([attempt], at_once=False)
    assert (await shop.ended(attempt))["state"] == "stopped"
    await shop.vanished(attempt)


@in_workshop
async def test_after_a_killed_build_the_next_one_begins_anew(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    killed = shop.attempt("killed")
    assert await shop.start(killed, environment={"requirements": ["slow"]}, **common) == []
    await shop.running(killed)
    ledger = shop.root.parent / "ledger"
    async with asyncio.timeout(30):
        while not ledger.exists() or "slow" not in ledger.read_text():
            await asyncio.sleep(0.02)
    await shop.executor.stop([killed], at_once=True)
    await shop.vanished(killed)
    uv = shop.root.parent / "programs/uv"
    uv.write_text(uv.read_text().replace("time.sleep(600)", "pass"))
    status = await shop.run(shop.attempt("next"), environment={"requirements": ["slow"]}, **common)
    assert output_of(status)["names"] == ["slow"]
    assert ledger.read_text() == "venv\nslow\nvenv\nslow\n"


@in_workshop
async def test_the_functions_failure_looks_as_anywhere(shop: Workshop) -> None:
    common = with_fake_uv(shop)
    shop.write("tasks.py", "def main(n):\n    print('dividing')\n    return 1 / n\n")
    attempt = shop.attempt()
    spec = {"environment": {"requirements": ["pandas"]}, "inputs": {"n": {"value": 0}}, **common}
    status = await shop.run(attempt, **spec)
    assert status["failure"]["kind"] == "exception"
    assert status["failure"]["detail"]["frames"][-1]["source"].strip() == "return 1 / n"
    assert b"dividing\n" in shop.log(attempt)


@pytest.mark.slow
@in_workshop
async def test_pip_builds_it_where_there_is_no_uv(shop: Workshop) -> None:
    with zipfile.ZipFile(shop.root / "tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "WHO = 'tiny'\n")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    shop.write("tasks.py", "def main():\n    import tiny\n    return tiny.WHO\n")
    only_python = str(Path(sys.executable).parent)
    spec = {
        "environment": {"requirements": ["./tiny-1-py3-none-any.whl"]},
        "builds": str(shop.root.parent / "builds"),
        "env": {"PATH": {"value": f"{only_python}:/usr/bin:/bin"}, "PIP_NO_INDEX": {"value": "1"}},
    }
    assert output_of(await shop.run(**spec)) == "tiny"
