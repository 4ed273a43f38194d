#!/usr/bin/env python3
"""Runs one task of this workflow. Written by `ork eject`; it needs Python 3.11 and nothing else.

    python3 task.py --start [name=value …]   begins a run: writes the params to out/
    python3 task.py NAME                     runs a task; its upstream tasks must have ended
    python3 task.py --finish                 prints the result; exit code 1 if a task failed

tasks.json says what each task does. out/NAME.json is its output, out/NAME.state how it ended, out/NAME.log what it printed.
The Makefile and run.sh call this file in the right order.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUT = Path(os.environ.get("OUT") or HERE / "out").resolve()
CODE = HERE / "code"
PLAN = json.loads((HERE / "tasks.json").read_text())
MISSING = object()
SUCCESS, FAILED, SKIPPED = "success", "failed", "skipped"


class TaskFailure(Exception):  # noqa: N818 - how a task ended
    def __init__(self, message: str, kind: str = "exit", retry: bool = True) -> None:
        super().__init__(message)
        self.kind, self.retry = kind, retry


# The run.


def start(pairs: list[str]) -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    if (OUT / "run.json").exists() and not pairs:
        return 0  # the same run goes on: tasks that succeeded are not run again
    given = json.loads(os.environ.get("PARAMS_JSON") or "{}")
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name not in PLAN["params"]:
            sys.exit(f"there is no param {name}; there are: {', '.join(PLAN['params']) or 'none'}")
        given[name] = parsed(text, PLAN["params"][name]["type"])
    missing = [name for name, param in PLAN["params"].items() if param["required"] and name not in given]
    if missing:
        sys.exit(
            f"these params have no value: {', '.join(missing)} (make PARAMS='{missing[0]}=…', or ./run.sh {missing[0]}=…)"
        )
    params = {name: given.get(name, param["default"]) for name, param in PLAN["params"].items()}
    for old in OUT.iterdir():
        if old.is_file():
            old.unlink()
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    run_id = "".join(random.choice(alphabet) for _ in range(12))
    facts = {"id": run_id, "params": params, "scheduled_for": os.environ.get("ORK_SCHEDULED_FOR")}
    write(OUT / "run.json", facts)
    return 0


def parsed(text: str, kind: str) -> Any:
    if kind in ("str", "date", "datetime"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        if kind == "any":
            return text
        sys.exit(f"{text!r} is not of type {kind}")


def finish() -> int:
    states = {name: state_of(name) for name in PLAN["tasks"]}
    for name, state in states.items():
        mark = {SUCCESS: "ok", FAILED: "FAILED", SKIPPED: "skipped"}.get(state["state"], state["state"])
        print(f"{mark:8} {name}  {state.get('reason') or ''}".rstrip())
    last = [name for name in PLAN["tasks"] if not any(name in task["depends_on"] for task in PLAN["tasks"].values())]
    outputs = {name: output_of(name) for name in last}
    write(OUT / "output.json", outputs if len(last) != 1 else outputs[last[0]])
    is_failed = any(state["state"] not in (SUCCESS, SKIPPED) for state in states.values())
    if is_failed:  # the next `make` runs what did not succeed
        for name, state in states.items():
            if state["state"] != SUCCESS:
                (OUT / f"{name}.state").unlink(missing_ok=True)
        (OUT / "stop").unlink(missing_ok=True)
    return 1 if is_failed else 0


def run_task(name: str) -> int:
    task = PLAN["tasks"][name]
    started = time.monotonic()
    state, reason = decide(task), None
    if state is None:
        try:
            write(OUT / f"{name}.json", run_instances(name, task))
            state = SUCCESS
        except TaskFailure as failure:
            state, reason = FAILED, str(failure)
    else:
        state, reason = SKIPPED, state
    write(OUT / f"{name}.state", {"state": state, "reason": reason, "seconds": round(time.monotonic() - started, 3)})
    print(f"{name}: {state}{f' ({reason})' if reason else ''}", flush=True)
    if state == FAILED and PLAN["fail_fast"]:
        (OUT / "stop").touch()
    return 0


def decide(task: dict[str, Any]) -> str | None:
    """Why the task does not run; None if it does."""
    states = [state_of(name)["state"] for name in task["depends_on"]]
    rule = task["run_if"]
    if (OUT / "stop").exists() and rule != "always":
        return "another task failed, and fail_fast is set"
    holds = {
        "all_success": all(state == SUCCESS for state in states),
        "any_failed": FAILED in states,
        "any_success": SUCCESS in states,
    }.get(rule, True)
    if not holds:
        return f"run_if {rule} does not hold"
    for condition in task["when"]:
        if not compare(resolve(condition["ref"]), condition["op"], condition["value"]):
            return f"when {condition['ref']} {condition['op']} {condition['value']!r} does not hold"
    return None


def compare(value: Any, op: str, wanted: Any) -> bool:
    if op == "exists":
        return (value is not MISSING) is bool(wanted)
    if op == "not_equals":
        return value is MISSING or value != wanted or isinstance(value, bool) != isinstance(wanted, bool)
    if value is MISSING:
        return False
    if op == "in":
        return value in wanted
    if op == "equals":
        return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
    try:
        return bool({"lt": value < wanted, "le": value <= wanted, "gt": value > wanted, "ge": value >= wanted}[op])
    except TypeError:
        raise TaskFailure(f"{value!r} and {wanted!r} cannot be compared", retry=False) from None


# Values.


def resolve(path: list[Any], item: Any = MISSING) -> Any:
    """The value of a reference; MISSING if there is none."""
    head, *rest = path
    if head == "item":
        value: Any = item
    elif head == "params":
        value, rest = run_facts()["params"].get(rest[0], MISSING), rest[1:]
    elif head == "run":
        value, rest = {"attempt": 1, **run_facts()}.get(rest[0]), rest[1:]
    else:
        value, rest = output_of(rest[0], MISSING), rest[2:]
    for step in rest:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def bound(value: dict[str, Any], item: Any) -> Any:
    """The value of a constant, a reference or a secret."""
    if "const" in value:
        return value["const"]
    if "secret" in value:
        if value["secret"] not in os.environ:
            raise TaskFailure(f"set the variable {value['secret']}: the task needs it", retry=False)
        return os.environ[value["secret"]]
    found = resolve(value["ref"], item)
    if found is MISSING:
        if value["ref"][0] == "tasks" and state_of(value["ref"][1])["state"] != SUCCESS:
            return None
        raise TaskFailure(f"there is no value at {value['ref']}", retry=False)
    return found


def deep(value: Any, item: Any) -> Any:
    """A config with its references and secrets resolved, at any depth."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in ("$ref", "$secret"):
            key = next(iter(value))
            return bound({key[1:]: value[key]}, item)
        return {key: deep(each, item) for key, each in value.items()}
    return [deep(each, item) for each in value] if isinstance(value, list) else value


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def run_facts() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((OUT / "run.json").read_text())
    return found


def state_of(name: str) -> dict[str, Any]:
    path = OUT / f"{name}.state"
    return json.loads(path.read_text()) if path.exists() else {"state": "not run"}


def output_of(name: str, default: Any = None) -> Any:
    path = OUT / f"{name}.json"
    return json.loads(path.read_text()) if state_of(name)["state"] == SUCCESS and path.exists() else default


def write(path: Path, value: Any) -> None:
    """Writes whole or not at all."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)
    os.replace(file.name, path)


# Instances and attempts.


def run_instances(name: str, task: dict[str, Any]) -> Any:
    """The output of the task: of a fan-out the list of all outputs."""
    (OUT / f"{name}.log").write_bytes(b"")
    items: list[Any] = [MISSING]
    if task["foreach"] is not None:
        found = bound(task["foreach"], MISSING)
        if not isinstance(found, list):
            raise TaskFailure("foreach is not over a list", retry=False)
        items = found
    count = 1
    if task["parallel"] is not None:
        count = task["parallel"] if isinstance(task["parallel"], int) else bound(task["parallel"], MISSING)
    if task["foreach"] is None and task["parallel"] is None:
        return attempts(name, task, MISSING, None, None)
    jobs = [(item, index) for item in items for index in range(count)]
    failures: list[str] = []

    def one(position: int) -> Any:
        try:
            return attempts(name, task, jobs[position][0], position, len(jobs))
        except TaskFailure as failure:
            failures.append(f"[{position}]: {failure}")
            return None

    with ThreadPoolExecutor(task["concurrency"] or os.cpu_count() or 2) as pool:
        outputs = list(pool.map(one, range(len(jobs))))
    if failures:
        raise TaskFailure("; ".join(failures[:3]))
    if task["foreach"] is not None and task["parallel"] is not None:
        return [outputs[begin : begin + count] for begin in range(0, len(outputs), count)]
    return outputs


def attempts(name: str, task: dict[str, Any], item: Any, index: int | None, total: int | None) -> Any:
    """Runs the task until it succeeds or has no retries left."""
    for number in range(1, task["retries"] + 2):
        try:
            return attempt(name, task, item, index, total, number)
        except TaskFailure as failure:
            if number > task["retries"] or not failure.retry or failure.kind not in task["retry_on"]:
                raise
            delay = task["retry_delay"]
            print(f"{name}: attempt {number} failed: {failure}; trying again", flush=True)
            time.sleep(delay if delay is not None else min(60, 2 ** (number - 1)))
    raise AssertionError


def attempt(name: str, task: dict[str, Any], item: Any, index: int | None, total: int | None, number: int) -> Any:
    action = task["action"]
    with tempfile.TemporaryDirectory(prefix="task-") as folder:
        files = {"input": Path(folder, "input.json"), "output": Path(folder, "output.json")}
        env = dict(os.environ)
        env |= {key: text_of(bound(value, item)) for key, value in task["env"].items()}
        facts = run_facts()
        env |= {
            "ORK_RUN_ID": facts["id"],
            "ORK_WORKFLOW_NAME": PLAN["name"],
            "ORK_TASK_NAME": name,
            "ORK_TASK_ID": f"{facts['id']}/{name}/{index or 0}",
            "ORK_ATTEMPT": str(number),
            "ORK_INPUT_FILE": str(files["input"]),
            "ORK_OUTPUT_FILE": str(files["output"]),
        }
        if index is not None:
            env |= {"ORK_PARALLEL_INDEX": str(index), "ORK_PARALLEL_COUNT": str(total)}
        if facts["scheduled_for"]:
            env["ORK_SCHEDULED_FOR"] = facts["scheduled_for"]
        paths = [str(CODE / each) for each in PLAN["pythonpath"]]
        env["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
        values = {key: bound(value, item) for key, value in task["inputs"].items()}
        upstream = {each: output_of(each) for each in task["depends_on"]}
        if action["kind"] == "command":
            return run_command(
                name, task, [text_of(bound(word, item)) for word in action["argv"]], files, env, values, upstream, item
            )
        if action["kind"] == "container":
            return run_container(
                name, task, [text_of(bound(word, item)) for word in action["argv"]], files, env, values, upstream, item
            )
        if action["kind"] == "workflow":
            return run_workflow(name, task, env, values)
        if action["kind"] == "approval":
            return approve(name, action["message"])
        spec: dict[str, Any] = {
            "action": deep(action, item),
            "inputs": values,
            "upstream": upstream,
            "params": facts["params"],
        }
        spec["states"] = {each: state_of(each)["state"] for each in task["depends_on"]}
        if item is not MISSING:
            spec["item"] = item
        files["input"].write_text(json.dumps(spec))
        execute(name, task, [sys.executable, str(HERE / "functions.py")], env, None)
        return json.loads(files["output"].read_text())


def given_input(values: dict[str, Any], upstream: dict[str, Any], item: Any) -> Any:
    if values:
        return values
    if item is not MISSING:
        return item
    return next(iter(upstream.values())) if len(upstream) == 1 else upstream


def run_command(
    name: str, task: dict[str, Any], argv: list[str], files: dict[str, Path], env: dict[str, str],
    values: dict[str, Any], upstream: dict[str, Any], item: Any,
) -> Any:  # fmt: skip
    text = json.dumps(given_input(values, upstream, item), ensure_ascii=False)
    files["input"].write_text(text)
    last = execute(name, task, program(argv), env, text)
    if files["output"].exists():
        try:
            return json.loads(files["output"].read_text())
        except ValueError as error:
            raise TaskFailure(f"its output file is not JSON: {error}") from None
    try:
        return json.loads(last) if last else None
    except ValueError:
        return None


def program(argv: list[str]) -> list[str]:
    """The command with its program: a file of the workflow's folder, of `script_dir`, or a program on PATH."""
    first = argv[0]
    folder = CODE / PLAN["folder"]
    candidates = [folder / first] if "/" in first else [CODE / PLAN["script_dir"] / first] if PLAN["script_dir"] else []
    for path in candidates:
        if path.is_file():
            if os.access(path, os.X_OK):
                return [str(path), *argv[1:]]
            return [{".py": sys.executable}.get(path.suffix, "sh"), str(path), *argv[1:]]
    return argv


def run_container(
    name: str, task: dict[str, Any], argv: list[str], files: dict[str, Path], env: dict[str, str],
    values: dict[str, Any], upstream: dict[str, Any], item: Any,
) -> Any:  # fmt: skip
    """Runs an image with the program `docker` (or the one in DOCKER)."""
    action, docker = task["action"], os.environ.get("DOCKER", "docker")
    own = [*task["env"], *(key for key in env if key.startswith("ORK_") and not key.endswith("_FILE"))]
    flags = [word for key in own for word in ("-e", f"{key}={env[key]}")]
    made = subprocess.run(
        [docker, "create", *flags, action["image"], *argv], capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise TaskFailure(made.stderr.strip()[-500:] or "docker create failed")
    container = made.stdout.strip()
    try:
        if action["to_file"]:
            files["input"].write_text(json.dumps(given_input(values, upstream, item)))
            subprocess.run([docker, "cp", str(files["input"]), f"{container}:{action['to_file']}"], check=True)
        execute(name, task, [docker, "start", "-a", container], env, None)
        if not action["from_file"]:
            return None
        copied = subprocess.run([docker, "cp", f"{container}:{action['from_file']}", str(files["output"])], check=False)
        if copied.returncode:
            raise TaskFailure(f"there is no file {action['from_file']} in the container")
        return json.loads(files["output"].read_text())
    finally:
        subprocess.run([docker, "rm", "-f", container], capture_output=True, check=False)


def run_workflow(name: str, task: dict[str, Any], env: dict[str, str], values: dict[str, Any]) -> Any:
    folder = HERE / "sub" / task["action"]["name"]
    out = OUT / f"{name}.run"
    execute(
        name, task, ["sh", str(folder / "run.sh")], {**env, "OUT": str(out), "PARAMS_JSON": json.dumps(values)}, None
    )
    return json.loads((out / "output.json").read_text())


def approve(name: str, message: str) -> Any:
    """A person decides: APPROVE names the tasks that are approved, else the terminal is asked."""
    if name in os.environ.get("APPROVE", "").split():
        return None
    if sys.stdin.isatty() and input(f"{name}: {message} [y/N] ").strip().lower() in ("y", "yes"):
        return None
    raise TaskFailure(f"not approved: {message} (APPROVE={name} approves)", retry=False)


def execute(name: str, task: dict[str, Any], argv: list[str], env: dict[str, str], stdin: str | None) -> str:
    """Runs a program, copies its output to the log, and returns the last line of its standard output."""
    try:
        process = subprocess.Popen(
            argv, env=env, cwd=CODE / PLAN["folder"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise TaskFailure(f"cannot start {argv[0]}: {error.strerror}") from None
    try:
        out, err = process.communicate((stdin or "").encode(), task["timeout"])
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the program and what it started
        log(name, b"".join(process.communicate()))
        raise TaskFailure(f"timed out after {task['timeout']:g} s", kind="timeout") from None
    log(name, out + err)
    if process.returncode:
        said = err.decode(errors="replace").strip().splitlines()
        is_final = process.returncode == 65 and argv[-1].endswith("functions.py")
        raise TaskFailure(said[-1] if said else f"exit code {process.returncode}", retry=not is_final)
    lines = out.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def log(name: str, data: bytes) -> None:
    with open(OUT / f"{name}.log", "ab") as file:
        file.write(data)
    for line in data.decode(errors="replace").splitlines():
        print(f"  {name} | {line}", flush=True)


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if arguments[0] == "--start":
        return start(arguments[1:])
    if arguments[0] == "--finish":
        return finish()
    if arguments[0] not in PLAN["tasks"]:
        sys.exit(f"there is no task {arguments[0]}")
    return run_task(arguments[0])


if __name__ == "__main__":
    sys.exit(main())
