"""Every kind of bad definition gets its code and its place, all at once, and never an exception."""

from __future__ import annotations

from textwrap import dedent

import pytest

from ork.compile.load import load_workflow
from ork.definition.problems import Problem

FILES = {
    "tasks.py": b"def main(): ...\ndef load(rows, table='t'): ...\ndef any(**kw): ...\n",
    "broken.py": b"x = 1\ndef main(:\n    pass\n",
}


def problems_of(text: str | bytes) -> tuple[Problem, ...]:
    data = dedent(text).encode() if isinstance(text, str) else text
    loaded = load_workflow(data, "w.yaml", read=FILES.get)
    assert (loaded.workflow is None) == bool(loaded.problems)
    return loaded.problems


def places(text: str | bytes) -> list[tuple[str, int, int]]:
    return [(problem.code, problem.line, problem.column) for problem in problems_of(text)]


def in_task(body: str) -> str:
    return f"name: w\ntasks:\n  a:\n    command: x\n    {body}\n"


WHOLE_FILES = [
    ("empty", b"", [("ORK112", 0, 0)]),
    ("only a comment", b"# nothing\n", [("ORK112", 0, 0)]),
    ("only null", b"~\n", [("ORK112", 0, 0)]),
    ("second document", b"name: w\ntasks: {a: {command: x}}\n---\nname: v\n", [("ORK112", 3, 1)]),
    ("NUL", b"name: w\x00\n", [("ORK110", 1, 8)]),
    ("NUL by escape", b'name: "w\\0"\ntasks: {a: {command: x}}\n', [("ORK110", 1, 7)]),
    ("invalid UTF-8", b"name: w\nx: \xff\n", [("ORK110", 2, 4)]),
    ("UTF-16", "name: w".encode("utf-16"), [("ORK110", 0, 0)]),
    ("escape character", b"name: w\n# \x1b[2J\n", [("ORK110", 2, 3)]),
    ("tab as indentation", b"name: w\ntasks:\n\ta: 1\n", [("ORK107", 3, 1)]),
    ("unclosed quote", b'name: "w\n', [("ORK107", 2, 1)]),
    ("colon in a plain value", b"name: a: b\n", [("ORK107", 1, 8)]),
    ("not a map", b"- a\n- b\n", [("ORK103", 1, 1)]),
    ("only text", b"hello\n", [("ORK103", 1, 1)]),
    ("too deep", b"name: w\ntasks: " + b"[" * 70 + b"]" * 70, [("ORK111", 2, 71)]),
    ("too deep, far too deep", b"a: " + b"[" * 200_000, [("ORK111", 1, 67)]),
    ("too large", b"#" * (64 * 1024 * 1024 + 1), [("ORK111", 0, 0)]),
    (
        "billion laughs",
        b"name: w\ntasks: {a: {command: x, inputs: {p: &a [x],\n q: [*a]}}}",
        [("ORK108", 2, 37), ("ORK108", 3, 6)],
    ),
]


@pytest.mark.parametrize(("data", "expected"), [row[1:] for row in WHOLE_FILES], ids=[row[0] for row in WHOLE_FILES])
def test_a_file_that_cannot_be_a_workflow_is_refused_with_a_place(
    data: bytes, expected: list[tuple[str, int, int]]
) -> None:
    assert places(data) == expected


MISTAKES = [
    ("unknown key of a workflow", "nam: w\ntasks: {a: {command: x}}", [("ORK101", 1, 1)]),
    ("unknown key of a task", in_task("comand: y"), [("ORK101", 5, 5)]),
    (
        "unknown key of a schedule",
        "name: w\nschedule: {cron: '* * * * *', tz: UTC}\ntasks: {a: {command: x}}",
        [("ORK101", 2, 31)],
    ),
    ("key that nobody knows", in_task("imago: b"), [("ORK101", 5, 5)]),
    ("image in capitals", in_task("image: Registry/Report"), [("ORK609", 5, 12)]),
    ("input of no container", in_task("input: {to_file: /a}"), [("ORK609", 5, 12)]),
    ("input without its file", in_task("image: b\n    input: {}"), [("ORK102", 6, 12)]),
    ("output beside the container", in_task("image: b\n    output: {from_file: a.json}"), [("ORK609", 6, 25)]),
    ("output above the container", in_task("image: b\n    output: {from_file: /a/../b}"), [("ORK609", 6, 25)]),
    ("container without an image", in_task("executor: container"), [("ORK609", 5, 15)]),
    ("image with a local executor", in_task("image: b\n    executor: process"), [("ORK115", 6, 15)]),
    ("image with an environment", in_task("image: b\n    environment: .venv"), [("ORK115", 6, 18)]),
    ("worker config that is not there", in_task("worker: heavy"), [("ORK606", 5, 13)]),
    ("resources of a process", in_task("resources: {cpu: none}"), [("ORK608", 5, 22)]),
    ("memory of no size", in_task("image: b\n    resources: {memory: 12 monkeys}"), [("ORK608", 6, 25)]),
    ("processors below zero", in_task("image: b\n    resources: {cpu: -1}"), [("ORK608", 6, 22)]),
    ("privileges", in_task("image: b\n    privileged: true"), [("ORK101", 6, 5)]),
    ("no name", "tasks: {a: {command: x}}", [("ORK102", 1, 1)]),
    ("no tasks", "name: w", [("ORK102", 1, 1)]),
    ("empty tasks", "name: w\ntasks: {}", [("ORK102", 2, 8)]),
    ("tasks without a value", "name: w\ntasks:", [("ORK102", 1, 1)]),
    ("tasks as a list", "name: w\ntasks:\n  - name: a", [("ORK103", 3, 3)]),
    ("task without a body", "name: w\ntasks:\n  a:\n", [("ORK103", 3, 5)]),
    ("task as text", "name: w\ntasks:\n  a: ./x.sh\n", [("ORK103", 3, 6)]),
    ("old boolean", "name: w\nfail_fast: yes\ntasks: {a: {command: x}}", [("ORK103", 2, 12)]),
    ("budget as a number", "name: w\nbudget: 5\ntasks: {a: {command: x}}", [("ORK123", 2, 9)]),
    ("budget as text", "name: w\nbudget: {usd: five}\ntasks: {a: {command: x}}", [("ORK123", 2, 15)]),
    ("budget in quotes", "name: w\nbudget: {usd: '5'}\ntasks: {a: {command: x}}", [("ORK123", 2, 15)]),
    ("no budget at all", "name: w\nbudget: {usd: 0}\ntasks: {a: {command: x}}", [("ORK123", 2, 15)]),
    ("debt as a budget", "name: w\nbudget: {usd: -3}\ntasks: {a: {command: x}}", [("ORK123", 2, 15)]),
    ("endless budget", "name: w\nbudget: {usd: .inf}\ntasks: {a: {command: x}}", [("ORK123", 2, 15)]),
    ("budget without usd", "name: w\nbudget: {on_exceed: alert}\ntasks: {a: {command: x}}", [("ORK123", 2, 9)]),
    ("budget of a task", in_task("budget: {usd: 5}"), [("ORK101", 5, 5)]),
    (
        "budget in another currency",
        "name: w\nbudget: {eur: 5}\ntasks: {a: {command: x}}",
        [("ORK123", 2, 9), ("ORK101", 2, 10)],
    ),
    (
        "budget that does nothing",
        "name: w\nbudget: {usd: 5, on_exceed: ignore}\ntasks: {a: {command: x}}",
        [("ORK104", 2, 29)],
    ),
    ("text for a number", in_task("retries: many"), [("ORK103", 5, 14)]),
    ("quoted number", in_task('retries: "2"'), [("ORK103", 5, 14)]),
    ("float for a whole number", in_task("retries: 2.5"), [("ORK103", 5, 14)]),
    ("negative retries", in_task("retries: -1"), [("ORK104", 5, 14)]),
    ("endless number", in_task("retries: " + "9" * 6000), [("ORK103", 5, 14)]),
    ("no such rule", in_task("run_if: all_succes"), [("ORK104", 5, 13)]),
    ("no such retry reason", in_task("retry_on: [exit, sigkill]"), [("ORK104", 5, 22)]),
    ("no such way out", in_task("on_unreachable: ignore"), [("ORK104", 5, 21)]),
    ("hostile workflow name", 'name: "../../etc"\ntasks: {a: {command: x}}', [("ORK105", 1, 7)]),
    ("hostile task name", 'name: w\ntasks:\n  "a/b": {command: x}', [("ORK105", 3, 3)]),
    ("name too long", f"name: {'n' * 129}\ntasks: {{a: {{command: x}}}}", [("ORK105", 1, 7)]),
    ("hostile param name", "name: w\nparams: {a.b: 1}\ntasks: {a: {command: x}}", [("ORK105", 2, 10)]),
    ("duplicate key", "name: w\nname: v\ntasks: {a: {command: x}}", [("ORK106", 2, 1)]),
    ("duplicate task", "name: w\ntasks:\n  a: {command: x}\n  a: {command: y}", [("ORK106", 4, 3)]),
    ("duplicate key in a constant", in_task("inputs: {x: {k: 1, k: 2}}"), [("ORK106", 5, 24)]),
    ("alias", "name: w\ntasks:\n  a: &x {command: x}\n  b: *x", [("ORK108", 3, 6), ("ORK108", 4, 6)]),
    ("merge key", in_task("<<: {retries: 1}"), [("ORK108", 5, 5)]),
    ("tag", in_task("timeout: !!int 5"), [("ORK109", 5, 14)]),
    ("Python tag", "name: w\ntasks: !!python/object:os.system {a: {command: x}}", [("ORK109", 2, 8)]),
    ("key that is a list", "name: w\n? [a]\n: 1\ntasks: {a: {command: x}}", [("ORK103", 2, 3)]),
    ("infinity", in_task("inputs: {x: .inf}"), [("ORK113", 5, 17)]),
    ("overflowing float", in_task("inputs: {x: 1e999}"), [("ORK113", 5, 17)]),
    ("number beyond 64 bits", in_task("inputs: {x: 99999999999999999999}"), [("ORK113", 5, 17)]),
    ("bad duration", in_task("timeout: 10 minutes"), [("ORK114", 5, 14)]),
    ("zero timeout", in_task("timeout: 0"), [("ORK114", 5, 14)]),
    ("negative delay", in_task("retry_delay: -5"), [("ORK114", 5, 18)]),
    ("endless duration", in_task("timeout: 99999999d"), [("ORK114", 5, 14)]),
    ("file and command", in_task("file: x.py"), [("ORK115", 4, 14)]),
    ("function with a command", in_task("function: f"), [("ORK115", 5, 15)]),
    ("python executor with a command", in_task("executor: python"), [("ORK115", 4, 14)]),
    ("open quote in a command", "name: w\ntasks:\n  a:\n    command: echo 'x", [("ORK116", 4, 14)]),
    ("empty command", "name: w\ntasks:\n  a:\n    command: []", [("ORK116", 4, 14)]),
    ("shell syntax", "name: w\ntasks:\n  a:\n    command: cat x | sort", [("ORK117", 4, 14)]),
    ("two commands in one", "name: w\ntasks:\n  a:\n    command: echo a; echo b", [("ORK117", 4, 14)]),
    ("two commands, one quoted", "name: w\ntasks:\n  a:\n    command: echo 'a'; echo b", [("ORK117", 4, 14)]),
    ("redirection without a space", "name: w\ntasks:\n  a:\n    command: echo a >b.txt", [("ORK117", 4, 14)]),
    ("redirection of errors", "name: w\ntasks:\n  a:\n    command: echo a 2>/dev/null", [("ORK117", 4, 14)]),
    ("unknown dependency", in_task("depends_on: [b]"), [("ORK201", 5, 18)]),
    ("unknown dependency as text", in_task("depends_on: b"), [("ORK201", 5, 17)]),
    ("self dependency", in_task("depends_on: [a]"), [("ORK202", 5, 18)]),
    ("own output", in_task("inputs: {x: {ref: a.y}}"), [("ORK202", 5, 23)]),
    ("bad ref", in_task("inputs: {x: {ref: tasks.a}}"), [("ORK204", 5, 23)]),
    ("unknown field of a run", in_task("env: {X: {ref: run.name}}"), [("ORK204", 5, 20)]),
    ("ref inside a constant", in_task("inputs: {x: [{ref: params.p}]}"), [("ORK204", 5, 18)]),
    ("ref to an unknown task", in_task("inputs: {x: {ref: tasks.b.output}}"), [("ORK205", 5, 23)]),
    ("ref to an unknown param", in_task("inputs: {x: {ref: params.day}}"), [("ORK206", 5, 23)]),
    ("ref in a command", "name: w\ntasks:\n  a:\n    command: [x, {ref: params.p}]", [("ORK206", 4, 24)]),
    ("bad cron", "name: w\nschedule: 0 25 * * *\ntasks: {a: {command: x}}", [("ORK301", 2, 11)]),
    ("too few cron fields", "name: w\nschedule: '* * *'\ntasks: {a: {command: x}}", [("ORK301", 2, 11)]),
    ("unknown cron form", "name: w\nschedule: '@dayly'\ntasks: {a: {command: x}}", [("ORK301", 2, 11)]),
    ("cron that never fires", "name: w\nschedule: 0 0 30 2 *\ntasks: {a: {command: x}}", [("ORK302", 2, 11)]),
    (
        "unknown zone",
        "name: w\nschedule: {cron: '@daily', timezone: Prague}\ntasks: {a: {command: x}}",
        [("ORK303", 2, 38)],
    ),
    (
        "hostile zone",
        "name: w\nschedule: {cron: '@daily', timezone: ../../etc/passwd}\ntasks: {a: {command: x}}",
        [("ORK303", 2, 38)],
    ),
    (
        "wrong default",
        "name: w\nparams:\n  n: {type: int, default: ten}\ntasks: {a: {command: x}}",
        [("ORK401", 3, 27)],
    ),
    ("unknown type", "name: w\nparams:\n  n: {type: integer}\ntasks: {a: {command: x}}", [("ORK402", 3, 13)]),
    ("missing file", "name: w\ntasks:\n  a: {file: no.py}", [("ORK501", 3, 13)]),
    ("missing script", "name: w\ntasks:\n  a: {command: ./no.sh --fast}", [("ORK501", 3, 16)]),
    ("missing script as a file", "name: w\ntasks:\n  a: {file: no.sh}", [("ORK501", 3, 13)]),
    ("Python that does not parse", "name: w\ntasks:\n  a: {file: broken.py}", [("ORK502", 2, 10)]),
    ("missing function", "name: w\ntasks:\n  a: {file: tasks.py, function: lod}", [("ORK503", 3, 33)]),
    ("missing argument", "name: w\ntasks:\n  a: {file: tasks.py, function: load}", [("ORK504", 3, 33)]),
    ("unknown argument", "name: w\ntasks:\n  a: {file: tasks.py, inputs: {x: 1}}", [("ORK505", 3, 32)]),
    ("unknown executor", in_task("executor: kubernetes"), [("ORK601", 5, 15)]),
    ("nothing to run", "name: w\ntasks:\n  a: {retries: 1}", [("ORK602", 3, 3)]),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES])
def test_a_mistake_has_its_code_and_its_place(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert places(text) == expected


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    found = places(
        """
        name: "bad name"
        schedule: often
        tasks:
          a: {command: x, retries: yes}
          b: {depends_on: [c]}
        """
    )
    assert found == [("ORK105", 2, 7), ("ORK301", 3, 11), ("ORK103", 5, 28), ("ORK602", 6, 3), ("ORK201", 6, 20)]


def test_the_message_and_the_hint_name_what_was_meant() -> None:
    (problem,) = problems_of(
        "name: w\ntasks:\n  transform: {command: x}\n  load: {command: x, depends_on: [transfrom]}"
    )
    assert problem.message == "task `load` depends on `transfrom`, which is not a task"
    assert problem.hint == "did you mean `transform`?"
    assert problem.source_line == "  load: {command: x, depends_on: [transfrom]}"
    assert problem.end_column - problem.column == len("transfrom")


def test_a_cycle_is_shown_as_a_path_in_which_each_task_comes_before_the_one_that_waits_for_it() -> None:
    text = "name: w\ntasks:\n  a: {command: x, depends_on: [c]}\n  b: {command: x, depends_on: [a]}\n"
    text += "  c: {command: x, inputs: {n: {ref: b}}}\n  d: {command: x, depends_on: [c]}\n"
    (problem,) = problems_of(text)
    assert problem.code == "ORK203"
    assert problem.message.endswith(("a → b → c → a", "b → c → a → b", "c → a → b → c"))


def test_both_places_of_a_duplicate_key_are_named() -> None:
    (problem,) = problems_of("name: w\ntasks:\n  a: {command: x}\n  b: {command: x}\n  a: {command: y}\n")
    assert (problem.line, "line 3" in problem.message) == (5, True)


def test_a_syntax_error_in_a_python_file_is_shown_in_that_file_once() -> None:
    found = problems_of("name: w\ntasks:\n  a: {file: broken.py}\n  b: {file: broken.py}\n")
    assert [(problem.file, problem.source_line) for problem in found] == [("broken.py", "def main(:")]
    assert "w.yaml:3" in str(found[0].hint)


def test_a_yaml_1_1_boolean_gets_a_hint() -> None:
    (problem,) = problems_of("name: w\nfail_fast: on\ntasks: {a: {command: x}}")
    assert problem.hint == "write `true`"


def test_a_mistake_in_a_task_causes_no_follow_up_problem() -> None:
    text = "name: w\nparams: {n: {type: nope}}\ntasks:\n  a: {command: x, timeout: soon}\n"
    text += "  b: {command: x, depends_on: [a], inputs: {v: {ref: params.n}}}\n"
    assert [problem.code for problem in problems_of(text)] == ["ORK402", "ORK114"]


def test_a_file_wrong_everywhere_ends_in_a_bounded_number_of_problems() -> None:
    text = "name: w\ntasks:\n" + "".join(f"  t{n}: {{comand: x}}\n" for n in range(3000))
    assert len(problems_of(text)) == 1000
