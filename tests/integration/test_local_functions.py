"""Plain Python functions as tasks, in real worker processes."""

from __future__ import annotations

import json
import sys
from textwrap import dedent
from typing import Any

import pytest

from tests.integration.workshop import Workshop, in_every_workshop, in_workshop


async def call(shop: Workshop, source: str, **spec: Any) -> dict[str, Any]:
    shop.write("tasks.py", dedent(source))
    return await shop.run(**spec)


def output(status: dict[str, Any]) -> Any:
    assert status["state"] == "success", status
    return json.loads(status["output"]["inline"])


@in_every_workshop
async def test_arguments_come_from_inputs_then_upstream_then_params_then_defaults(shop: Workshop) -> None:
    source = """
        def main(a, b, c, d=4, *, e=5):
            return [a, b, c, d, e]
    """
    status = await call(
        shop,
        source,
        inputs={"a": {"value": "input"}},
        upstream={"a": {"value": "x"}, "b": {"value": "upstream"}},
        params={"a": "x", "b": "x", "c": "param", "e": "named"},
    )
    assert output(status) == ["input", "upstream", "param", 4, "named"]


@in_every_workshop
async def test_annotated_types_arrive_and_return(shop: Workshop) -> None:
    source = """
        from __future__ import annotations
        from dataclasses import dataclass
        from datetime import date, timedelta
        from enum import Enum
        from pathlib import Path
        from uuid import UUID

        class Size(Enum):
            SMALL = "s"

        @dataclass
        class Order:
            id: UUID
            day: date
            size: Size
            where: Path

        def main(orders: list[Order], wait: timedelta | None = None):
            assert isinstance(orders[0].day, date) and isinstance(orders[0].where, Path)
            orders[0].day += wait
            return orders
    """
    order = {"id": "123e4567-e89b-12d3-a456-426614174000", "day": "2026-01-31", "size": "s", "where": "a/b"}
    status = await call(shop, source, inputs={"orders": {"value": [order]}, "wait": {"value": 86400}})
    assert output(status) == [{**order, "day": "2026-02-01"}]


@in_every_workshop
async def test_an_upstream_that_did_not_succeed_is_none_whatever_was_annotated(shop: Workshop) -> None:
    status = await call(shop, "def main(load: dict):\n    return load is None\n", upstream={"load": {"missing": True}})
    assert output(status) is True


@in_every_workshop
async def test_async_functions_are_awaited(shop: Workshop) -> None:
    source = """
        import asyncio

        async def main():
            await asyncio.sleep(0)
            return "awaited"
    """
    assert output(await call(shop, source)) == "awaited"


@in_every_workshop
async def test_the_context_tells_who_and_takes_metrics(shop: Workshop) -> None:
    source = """
        import ork

        def main(about: ork.Context):
            about.log.info("rows %d", 3)
            about.metrics.set("rows", 3)
            about.metrics.incr("pages")
            return [about.workflow_name, about.task_name, about.attempt, about.run_id, about.task_id]
    """
    status = await call(shop, source)
    run = shop.attempt().key.run
    assert output(status) == ["flow", "work", 1, run, f"{run}/work/0"]
    assert status["metrics"] == {"rows": 3, "pages": 1}
    assert shop.log(shop.attempt()) == b"INFO rows 3\n"


@in_every_workshop
async def test_exit_zero_is_success_without_output(shop: Workshop) -> None:
    status = await call(shop, "import sys\n\ndef main():\n    sys.exit()\n")
    assert (status["state"], status["output"]) == ("success", None)


@in_every_workshop
async def test_logging_at_info_reaches_the_log_and_stays_configurable(shop: Workshop) -> None:
    source = """
        import logging

        def main():
            logging.getLogger("mine").info("plain")
            logging.basicConfig(level=logging.DEBUG, format="own %(message)s")
            logging.debug("set up")
    """
    await call(shop, source)
    assert shop.log(shop.attempt()) == b"INFO mine: plain\nown set up\n"


@in_every_workshop
async def test_threads_and_exit_functions_are_waited_for(shop: Workshop) -> None:
    source = """
        import atexit, threading, time

        def late():
            time.sleep(0.05)
            print("thread done")

        def main():
            atexit.register(print, "exit function ran")
            threading.Thread(target=late).start()
    """
    await call(shop, source)
    assert shop.log(shop.attempt()) == b"thread done\nexit function ran\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_works_inside_a_task(method: str, tmp_path: Any) -> None:
    @in_workshop
    async def test(shop: Workshop) -> None:
        source = f"""
            import multiprocessing

            def double(n):
                return n * 2

            def main():
                with multiprocessing.get_context({method!r}).Pool(2) as pool:
                    return pool.map(double, [1, 2, 3])
        """
        assert output(await call(shop, source)) == [2, 4, 6]

    test(tmp_path)


@in_every_workshop
async def test_files_in_folders_import_their_neighbours(shop: Workshop) -> None:
    shop.write("shared.py", "word = 'root'\n")
    shop.write("steps/__init__.py", "")
    shop.write("steps/words.py", "word = 'package'\n")
    shop.write(
        "steps/one.py", "import shared\nfrom . import words\n\ndef main():\n    return [shared.word, words.word]\n"
    )
    assert output(await shop.run(file="steps/one.py")) == ["root", "package"]


@in_every_workshop
async def test_a_file_named_like_a_standard_module_hides_nothing(shop: Workshop) -> None:
    shop.write("steps/email.py", "import email.message\n\ndef main():\n    return email.message.__name__\n")
    assert output(await shop.run(file="steps/email.py")) == "email.message"


@in_every_workshop
async def test_modules_and_methods_can_be_named(shop: Workshop) -> None:
    shop.write("jobs/daily.py", "class Job:\n    @staticmethod\n    def run():\n        return 'ran'\n")
    assert output(await shop.run(file=None, module="jobs.daily", function="Job.run")) == "ran"


@in_every_workshop
async def test_the_task_sees_its_folder_its_variables_and_python_path(shop: Workshop) -> None:
    shop.write("extra/far.py", "place = 'far'\n")
    source = """
        import os, far

        def main():
            mine = sorted(name for name in os.environ if name.startswith("ORK_"))
            return [os.getcwd(), os.environ["GREETING"], os.environ["LIMITS"], far.place, mine]
    """
    env = {
        "GREETING": {"value": "hello"},
        "LIMITS": {"value": {"n": 1}},
        "PYTHONPATH": {"value": str(shop.root / "extra")},
    }
    here, greeting, limits, place, mine = output(await call(shop, source, env=env))
    assert (here, greeting, limits, place) == (str(shop.root), "hello", '{"n":1}', "far")
    assert mine == ["ORK_ATTEMPT", "ORK_ATTEMPT_ID", "ORK_RUN_ID", "ORK_TASK_ID", "ORK_TASK_NAME", "ORK_WORKFLOW_NAME"]


@in_every_workshop
async def test_nothing_of_orks_own_environment_is_importable(shop: Workshop) -> None:
    source = """
        import sys

        def main():
            return [name for name in sys.modules if name.startswith("ork.") and "worker" not in name and "objects" not in name]
    """
    assert sorted(output(await call(shop, source))) == [
        "ork.errors",
        "ork.model",
        "ork.model.digest",
        "ork.model.value_reference",
        "ork.system",
        "ork.system.linux",
    ]


@in_every_workshop
async def test_pydantic_models_are_made_and_stored(shop: Workshop) -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: models not tested")
    source = """
        from datetime import date
        from pydantic import BaseModel

        class Row(BaseModel):
            day: date
            n: int

        def main(row: Row):
            return {"next": Row(day=row.day, n=row.n + 1)}
    """
    shop.write("tasks.py", dedent(source))
    from ork.model.record import replaced

    order = shop.order(shop.attempt(), inputs={"row": {"value": {"day": "2026-01-31", "n": "1"}}})
    status = await shop.run_order(replaced(order, interpreter=sys.executable))
    assert output(status) == {"next": {"day": "2026-01-31", "n": 2}}


@pytest.mark.parametrize("name", ["types", "enum", "re", "traceback", "importlib", "collections", "token"])
def test_a_neighbour_named_like_a_standard_module_does_not_keep_a_task_from_running(name: str, tmp_path: Any) -> None:
    @in_workshop
    async def test(shop: Workshop) -> None:
        shop.write(f"{name}.py", "raise RuntimeError('not the module you wanted')\n")
        shop.write("tasks.py", "import dataclasses, enum, re\n\ndef main(n: int):\n    return n + 1\n")
        assert output(await shop.run(inputs={"n": {"value": 1}})) == 2

    test(tmp_path)


@in_every_workshop
async def test_an_answer_that_no_pipe_holds_is_read_while_it_is_written(shop: Workshop) -> None:
    status = await call(shop, "def main():\n    return '\"' * 40_000\n", inline_limit=1 << 17)
    assert output(status) == '"' * 40_000
