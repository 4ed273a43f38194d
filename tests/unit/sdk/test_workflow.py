"""Workflows written in Python say what a YAML file would say, and leave functions as they are."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from datetime import date, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from ork import Context, Workflow, ref, secret
from ork.sdk import options


class Colour(Enum):
    RED = "red"


def tasks_of(workflow: Workflow) -> dict[str, Any]:
    return dict(workflow.document(None)["tasks"])


def params_of(workflow: Workflow) -> dict[str, Any]:
    return dict(workflow.document(None).get("params", {}))


def test_a_decorated_function_is_the_function_itself() -> None:
    etl = Workflow("etl")

    def plain(x: int) -> int:
        return x + 1

    assert etl.task(plain) is plain
    assert etl.task(name="again", retries=1)(plain) is plain
    assert plain(1) == 2


def test_a_parameter_named_after_a_task_depends_on_it_wherever_that_is_written() -> None:
    etl = Workflow("etl")

    @etl.task
    def load(clean: object, extract: object) -> None: ...

    @etl.task(depends_on=["prepare"])
    def clean(extract: object) -> None: ...

    @etl.task
    def extract() -> None: ...

    etl.command("prepare", ["true"])
    tasks = tasks_of(etl)
    assert tasks["load"]["depends_on"] == ["clean", "extract"]
    assert tasks["clean"]["depends_on"] == ["prepare", "extract"]
    assert "depends_on" not in tasks["extract"]


def test_an_input_of_that_name_is_no_dependency_and_no_param() -> None:
    etl = Workflow("etl")
    etl.command("extract", ["true"])

    @etl.task(inputs={"extract": 1, "day": ref("run.scheduled_for")})
    def load(extract: int, day: str) -> None: ...

    assert "depends_on" not in tasks_of(etl)["load"]
    assert params_of(etl) == {}


def test_tasks_may_be_named_by_their_functions() -> None:
    etl = Workflow("etl")

    @etl.task
    def files() -> list[str]: ...  # type: ignore[empty-body]

    @etl.task(foreach=files)
    def clean(item: str) -> None: ...

    @etl.task(depends_on=[files, clean])
    def report() -> None: ...

    tasks = tasks_of(etl)
    assert tasks["clean"]["foreach"] == "files"
    assert tasks["report"]["depends_on"] == ["files", "clean"]


def test_other_parameters_become_params_typed_by_their_annotations() -> None:
    etl = Workflow("etl")

    @etl.task
    def extract(
        ctx: object,
        context: Context,
        name: str,
        day: date,
        at: datetime | None,
        rate: float = 0.5,
        *rest: int,
        count: int = 3,
        untyped=None,  # type: ignore[no-untyped-def]
        **more: int,
    ) -> None: ...

    assert params_of(etl) == {
        "name": {"type": "str"},
        "day": {"type": "date"},
        "at": {"type": "datetime"},
        "rate": {"type": "float", "default": 0.5},
        "count": {"type": "int", "default": 3},
        "untyped": {"default": None},
    }


def test_annotations_that_are_objects_mean_the_same_as_text() -> None:
    def made(annotation: object) -> dict[str, Any]:
        def task(x: object) -> None: ...

        task.__annotations__["x"] = annotation
        etl = Workflow("etl")
        etl.task(task)
        return dict(params_of(etl)["x"])

    for annotation in (date, "date", "datetime.date", date | None, "date | None", "Optional[date]"):
        assert made(annotation) == {"type": "date"}, annotation
    assert made(list[str]) == made("list[str]") == made(int | str) == {}


def test_a_default_that_no_run_could_be_given_stays_with_the_function() -> None:
    etl = Workflow("etl")

    @etl.task
    def extract(sentinel: object = object(), day: date = date(2026, 1, 2), colour: Colour = Colour.RED) -> None: ...

    assert params_of(etl) == {"day": {"type": "date", "default": "2026-01-02"}, "colour": {"default": "red"}}


def test_a_param_that_one_task_requires_is_required() -> None:
    etl = Workflow("etl")

    @etl.task
    def one(day: str = "today") -> None: ...

    @etl.task
    def two(day: str) -> None: ...

    @etl.task
    def three(day=None) -> None: ...  # type: ignore[no-untyped-def]

    assert params_of(etl) == {"day": {"type": "str"}}
    etl.tasks.pop("three")
    assert etl.mistakes(None) == []
    etl.tasks.pop("two")
    assert params_of(etl) == {"day": {"type": "str", "default": "today"}}


def test_declared_params_come_first_and_settle_every_doubt() -> None:
    etl = Workflow("etl", params={"day": date, "batch": {"type": int, "default": 5}, "note": "hello"})

    @etl.task
    def one(day: str, extra: int = 1) -> None: ...

    @etl.task
    def two(day: int) -> None: ...

    assert list(params_of(etl).items()) == [
        ("day", {"type": "date"}),
        ("batch", {"type": "int", "default": 5}),
        ("note", "hello"),
        ("extra", {"type": "int", "default": 1}),
    ]


@pytest.mark.parametrize(("first", "second"), [((int, 1), (int, 2)), ((int, 1), (str, 1))])
def test_tasks_that_disagree_about_a_param_are_told_so_with_the_line(first: Any, second: Any) -> None:
    etl = Workflow("etl")
    for name, (kind, default) in {"one": first, "two": second}.items():

        def task(x: object = default) -> None: ...

        task.__annotations__["x"] = kind
        etl.task(name=name)(task)
    (told,) = etl.mistakes(None)
    assert (told.code, told.line) == ("ORK404", etl.tasks["two"].line)
    assert "`x`" in told.message


def test_a_duplicate_task_name_is_rejected_at_its_definition() -> None:
    etl = Workflow("etl")
    etl.command("a", ["true"])
    with pytest.raises(ValueError, match="two tasks named a"):
        etl.approval("a", "sure?")


def test_values_become_what_yaml_would_say() -> None:
    etl = Workflow("etl")
    etl.command(
        "a",
        ["cat", Path("x/y"), 5],
        timeout=timedelta(minutes=2),
        env={"DAY": date(2026, 1, 2), "KEY": secret("KEY")},
        inputs={"colours": (Colour.RED,), "rows": ref("tasks.b.output")},
    )
    assert tasks_of(etl)["a"] == {
        "command": ["cat", "x/y", 5],
        "timeout": 120.0,
        "env": {"DAY": "2026-01-02", "KEY": {"secret": "KEY"}},
        "inputs": {"colours": ["red"], "rows": {"ref": "tasks.b.output"}},
    }


def test_a_value_that_cannot_be_written_down_is_refused_with_its_place() -> None:
    etl = Workflow("etl")
    with pytest.raises(TypeError, match=r"a\.inputs\.x\[1\]: object"):
        etl.command("a", ["true"], inputs={"x": [1, object()]})


def test_files_are_seen_from_the_folder_of_the_workflow(tmp_path: Path) -> None:
    etl = Workflow("etl")
    etl.task(tasks_of)
    etl.task(functools.wraps(params_of)(lambda workflow: None))
    etl.task(json.dumps)
    found = etl.document(str(Path(__file__).parent))["tasks"]
    assert found["tasks_of"] == {"file": "test_workflow.py", "function": "tasks_of"}
    assert found["params_of"] == {"file": "test_workflow.py", "function": "params_of"}
    assert found["dumps"] == {"module": "json", "function": "dumps"}


def test_functions_that_a_worker_cannot_import_are_mistakes() -> None:
    etl = Workflow("etl")
    etl.task(name="a")(lambda: 1)
    etl.task(name="b")(Context.__init__)

    @etl.task
    def inner() -> None: ...

    etl.task(tasks_of)
    told = etl.mistakes(str(Path(__file__).parent))
    assert [(each.code, each.line) for each in told] == [
        ("ORK503", entry.line) for entry in etl.tasks.values() if entry.name != "tasks_of"
    ]
    assert etl.mistakes(None) == []


def test_a_workflow_and_its_tasks_know_their_lines() -> None:
    etl = Workflow("etl")
    line = etl.line

    @etl.task
    def one() -> None: ...

    @etl.task(
        retries=1,
    )
    def two() -> None: ...

    etl.command("three", ["true"])
    assert etl.file == __file__
    assert Path(__file__).read_text().splitlines()[line - 1].strip() == 'etl = Workflow("etl")'
    assert [entry.line - line for entry in etl.tasks.values()] == [3, 6, 11]


def test_what_a_helper_makes_belongs_to_the_module_that_asked_for_it(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(
        "from ork import Workflow\n\ndef make(name):\n    made = Workflow(name)\n    made.command('a', ['true'])\n    return made\n"
    )
    (tmp_path / "flow.py").write_text("import helper\n\netl = helper.make('etl')\netl.command('b', ['true'])\n")
    script = "import flow; e = flow.etl; print(e.file, e.line, *[t.line for t in e.tasks.values()])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.split() == [str(tmp_path / "flow.py"), "3", "3", "4"]


def test_every_option_of_a_definition_is_known_to_type_checkers() -> None:
    from ork.definition.tasks import DEFAULTS_TABLE, TASK_TABLE
    from ork.definition.workflow_file import WORKFLOW_TABLE

    what_to_run = {"file", "module", "function", "command", "workflow", "approval", "job", "args", "notebook"}
    assert set(get_type_hints(options.TaskOptions)) == set(TASK_TABLE.by_name) - what_to_run
    assert set(get_type_hints(options.DefaultOptions)) == set(DEFAULTS_TABLE.by_name)
    by_other_means = {"name", "schedule", "tasks", "import"}
    assert set(get_type_hints(options.WorkflowOptions)) == set(WORKFLOW_TABLE.by_name) - by_other_means


def test_defining_a_workflow_is_cheap_for_a_worker() -> None:
    script = """
import sys
before = set(sys.modules)
from ork import Workflow, ref
etl = Workflow("etl")
@etl.task(retries=2)
def extract(day: int = 3): ...
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, env=_with_source())
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & {"inspect", "typing", "dataclasses", "re", "enum", "datetime"}


def _with_source() -> dict[str, str]:
    import ork

    return {"PYTHONPATH": str(Path(str(ork.__file__)).parents[1])}
