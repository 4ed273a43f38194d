"""What tasks import is imported once, by the server they are forked from, where no task can tell the difference."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import venv
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ork.executors import fork_servers
from ork.executors.fork_server import ForkServer
from ork.executors.fork_servers import ForkServers, PreloadGroup
from ork.executors.local import LocalExecutor
from ork.fallbacks import PRELOADING, Fallbacks
from ork.model.workflow import Isolation
from tests.conftest import environment_with
from tests.integration.workshop import Workshop, is_alive

# An installed library that takes a while to import, and says who imported it.
LIBRARY = """
import os, time
begun = time.process_time()
while time.process_time() < begun + 0.03:
    pass
IMPORTER = os.getpid()
VALUE = 1
"""
TASKS = """
import os, sys
import heavy

def main():
    return ['preloaded' if heavy.IMPORTER != os.getpid() else 'imported', heavy.VALUE]
"""
PRELOADED, IMPORTED = ["preloaded", 1], ["imported", 1]


class Shop(Workshop):
    """A workshop whose project has an interpreter of its own, with site-packages to install libraries in."""

    def __init__(
        self, folder: Path, isolation: Isolation, preload: tuple[str, ...] | None, environment: Path | None = None
    ) -> None:
        super().__init__(folder, isolation=isolation)
        if environment is None:
            venv.create(self.root / ".venv", symlinks=True)
        else:
            (self.root / ".venv").symlink_to(environment)
        (self.packages,) = (self.root / ".venv" / "lib").glob("python*/site-packages")
        self.fallbacks = Fallbacks(lambda _component, _reason: None)
        self.servers = ForkServers(self.fallbacks, preload)
        self.executor = LocalExecutor(
            "python", self.objects, socket_dir=str(folder), isolation=isolation, servers=self.servers
        )
        self.count = 0

    def install(self, **modules: str) -> None:
        for name, text in modules.items():
            path = self.packages / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    async def answer(self, env: dict[str, str] | None = None, **spec: Any) -> Any:
        self.count += 1
        attempt = self.attempt(f"task{self.count}")
        order = self.order(attempt, env={name: {"value": value} for name, value in (env or {}).items()}, **spec)
        status = await self.run_order(order, env=tuple(sorted((env or {}).items())))
        assert status["state"] == "success", status["failure"]
        return json.loads(status["output"]["inline"])

    def server(self, env: dict[str, str] | None = None) -> ForkServer | None:
        self.servers.preloads.look_again()
        interpreter = str(self.root / ".venv" / "bin" / "python")
        return self.servers.preloads.server(
            PreloadGroup(interpreter, str(self.root), (), tuple(sorted((env or {}).items())))
        )

    async def ready(self, env: dict[str, str] | None = None) -> ForkServer:
        async with asyncio.timeout(60):
            while (found := self.server(env)) is None:
                await asyncio.sleep(0.01)
        return found

    async def left_out(self, reason: str) -> str:
        """The note for `ork doctor`, once it has this reason."""
        async with asyncio.timeout(60):
            while reason not in (note := self.fallbacks.reasons.get(PRELOADING, "")):
                await asyncio.sleep(0.01)
        return note


@pytest.fixture(autouse=True)
def _again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_servers, "_AGAIN_SECONDS", 0.1)


Test = Callable[[Shop], Coroutine[Any, Any, None]]


def in_shop(
    isolation: Isolation = Isolation.FORK, preload: tuple[str, ...] | None = None, environment: Path | None = None
) -> Callable[[Test], Any]:
    def decorate(test: Test) -> Callable[[Path], None]:
        async def whole(folder: Path) -> None:
            shop = Shop(folder, isolation, preload, environment)
            if environment is None:
                shop.install(heavy=LIBRARY)
            shop.write("tasks.py", TASKS)
            try:
                await test(shop)
            finally:
                await shop.executor.stop(shop.made, at_once=True)
                await shop.executor.close()

        def run(tmp_path: Path) -> None:
            asyncio.run(whole(tmp_path))

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


@in_shop()
async def test_what_a_task_imported_is_loaded_once_for_those_that_follow(shop: Shop) -> None:
    assert await shop.answer() == IMPORTED
    await shop.ready()
    assert [await shop.answer() for _ in range(3)] == [PRELOADED] * 3


@in_shop()
async def test_no_task_waits_for_an_import(shop: Shop) -> None:
    """Until the server is ready, tasks run as without it."""
    shop.install(heavy=LIBRARY.replace("pass", "'ORK_TASK_NAME' in os.environ or time.sleep(600)"))
    assert await shop.answer() == IMPORTED
    async with asyncio.timeout(20):
        assert [await shop.answer() for _ in range(3)] == [IMPORTED] * 3
    assert shop.server() is None


@in_shop(preload=("heavy",))
async def test_named_modules_are_loaded_before_any_task_imports_them(shop: Shop) -> None:
    shop.write("other.py", "def main():\n    return 'other'\n")
    assert await shop.answer(file="other.py") == "other"
    await shop.ready()
    assert await shop.answer() == PRELOADED


@in_shop(preload=())
async def test_preload_none_switches_it_off(shop: Shop) -> None:
    assert [await shop.answer() for _ in range(2)] == [IMPORTED] * 2
    assert shop.server() is None


@in_shop(Isolation.SHARED, preload=("heavy",))
async def test_shared_processes_have_the_modules_too(shop: Shop) -> None:
    assert await shop.answer() == IMPORTED
    await shop.ready()
    assert await shop.answer() == PRELOADED


@in_shop()
async def test_the_projects_own_files_are_never_preloaded(shop: Shop) -> None:
    shop.write("own.py", LIBRARY)
    shop.write("tasks.py", TASKS + "\nimport own\n\ndef mine():\n    return own.IMPORTER == os.getpid()\n")
    assert await shop.answer(function="mine") is True
    await shop.ready()
    assert await shop.answer() == PRELOADED
    assert await shop.answer(function="mine") is True


@in_shop()
async def test_a_file_of_the_project_that_comes_to_shadow_a_module_is_what_is_imported(shop: Shop) -> None:
    assert await shop.answer() == IMPORTED
    await shop.ready()
    shop.write("heavy.py", "IMPORTER, VALUE = 0, 'own'\n")
    assert (await shop.answer())[1] == "own"
    await shop.left_out("heavy.py of the project shadows")


@in_shop()
async def test_a_dependency_that_the_project_shadows_is_not_preloaded(shop: Shop) -> None:
    """`middle` finds the project's `heavy` in a task, so it must not find the installed one before."""
    shop.install(middle=LIBRARY.replace("VALUE = 1", "import heavy\nVALUE = heavy.VALUE"))
    shop.write("heavy.py", "VALUE = 'own'\n")
    shop.write("tasks.py", "import middle\n\ndef main():\n    return middle.VALUE\n")
    assert await shop.answer() == "own"
    await shop.left_out("heavy.py of the project shadows")
    assert await shop.answer() == "own"


@in_shop()
async def test_a_namespace_package_can_be_preloaded_and_extended_by_the_project(shop: Shop) -> None:
    shop.install(**{"space/heavy": LIBRARY})
    shop.write("space/own.py", "VALUE = 2\n")
    tasks = TASKS.replace("import heavy\n", "from space import heavy, own\n").replace("heavy.VALUE]", "own.VALUE]")
    shop.write("tasks.py", tasks)
    assert await shop.answer() == ["imported", 2]
    await shop.ready()
    assert await shop.answer() == ["preloaded", 2]


@in_shop()
async def test_a_library_that_was_upgraded_is_imported_anew(shop: Shop) -> None:
    assert await shop.answer() == IMPORTED
    await shop.ready()
    (shop.packages / "heavy.py").unlink()
    shop.install(heavy=LIBRARY.replace("VALUE = 1", "VALUE = 'another'"))
    (shop.packages / "heavy-2.dist-info").mkdir()
    assert (await shop.answer())[1] == "another"
    async with asyncio.timeout(60):
        while (found := await shop.answer()) != ["preloaded", "another"]:
            assert found == ["imported", "another"]


@in_shop()
async def test_tasks_with_variables_of_their_own_use_a_server_that_has_them(shop: Shop) -> None:
    shop.install(heavy=LIBRARY + "THREADS = os.environ.get('OMP_NUM_THREADS')\n")
    shop.write("tasks.py", TASKS.replace("heavy.VALUE]", "heavy.THREADS]"))
    assert await shop.answer() == ["imported", None]
    await shop.ready()
    env = {"OMP_NUM_THREADS": "1"}
    assert await shop.answer(env) == ["imported", "1"]
    await shop.ready(env)
    assert await shop.answer(env) == ["preloaded", "1"]
    assert await shop.answer() == ["preloaded", None]
    assert await shop.answer({"OMP_NUM_THREADS": "2"}) == ["imported", "2"]


@in_shop()
async def test_a_task_whose_modules_must_not_be_preloaded_imports_them_itself(shop: Shop) -> None:
    """As the scheduler asks for tasks of another user, for instance."""
    assert await shop.answer() == IMPORTED
    await shop.ready()
    status = await shop.run_order(shop.order(shop.attempt("alone")), env=None)
    assert json.loads(status["output"]["inline"]) == IMPORTED


TROUBLES = {
    "it starts a thread": "import threading\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
    "it leaves a file or a socket open": "import socket\nSOCKET = socket.socket()",
    "it starts a process": "import subprocess\nPROCESS = subprocess.Popen(['sleep', '600'])",
    "it prints": "print('hello')",
    "it raised SystemExit: 3": "if 'ORK_TASK_NAME' not in os.environ: raise SystemExit(3)",
    "it raised RuntimeError: no": "if 'ORK_TASK_NAME' not in os.environ: raise RuntimeError('no')",
    "it raised ValueError: xxx": "if 'ORK_TASK_NAME' not in os.environ: raise ValueError('x' * 100_000)",
    "its import ends the process": "if 'ORK_TASK_NAME' not in os.environ: os.kill(os.getpid(), 11)",
    "it changes the environment variable HOME": "os.environ['HOME'] = '/'",
    "it changes the handling of signals": "import signal\nsignal.signal(signal.SIGUSR1, print)",
}


@pytest.mark.parametrize("reason", TROUBLES)
def test_a_module_that_a_fork_could_harm_is_left_out_and_the_others_are_not(tmp_path: Path, reason: str) -> None:
    @in_shop()
    async def test(shop: Shop) -> None:
        shop.install(trouble=f"import os, time\n{TROUBLES[reason]}\n")
        shop.write("tasks.py", TASKS + "import trouble\n")
        assert await shop.answer() == IMPORTED
        note = await shop.left_out(reason)
        assert f"trouble in {shop.root}" in note
        assert len(note) < 1000
        await shop.ready()
        assert await shop.answer() == PRELOADED

    test(tmp_path)


@in_shop(preload=("endless", "heavy"))
async def test_an_import_that_never_ends_is_given_up(shop: Shop) -> None:
    shop.servers.preloads._max_seconds = 3.0
    shop.install(endless="import time\ntime.sleep(600)\n")
    shop.write("other.py", "def main():\n    return 'other'\n")
    assert await shop.answer(file="other.py") == "other"
    await shop.left_out("its import took more than 3 s")
    await shop.ready()
    assert await shop.answer() == PRELOADED


@in_shop()
async def test_exit_functions_and_loggers_of_preloaded_modules_work_in_the_task(shop: Shop) -> None:
    shop.install(heavy=LIBRARY + "import atexit, logging\natexit.register(lambda: print('bye'))\n")
    shop.write(
        "tasks.py", TASKS + "\nimport logging\n\ndef say():\n    logging.getLogger('x').info('hello')\n    return 1\n"
    )
    assert await shop.answer() == IMPORTED
    await shop.ready()
    for function in ("main", "say"):
        await shop.answer(function=function)
        assert b"bye\n" in shop.log(shop.made[-1])
    assert b"INFO x: hello\n" in shop.log(shop.made[-1])


def test_preloaded_modules_do_not_see_the_credentials_of_the_object_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")

    @in_shop()
    async def scene(shop: Shop) -> None:
        shop.executor._environment.pass_env = ("ORK_STORE_AWS_SECRET_ACCESS_KEY",)
        shop.install(heavy=LIBRARY + "SEEN = [name for name in os.environ if 'SECRET' in name]\n")
        shop.write("tasks.py", "import heavy\n\ndef main():\n    return heavy.SEEN\n")
        await shop.answer()
        await shop.ready()
        assert await shop.answer() == []

    scene(tmp_path)


@in_shop()
async def test_two_projects_have_servers_of_their_own(shop: Shop) -> None:
    assert await shop.answer() == IMPORTED
    await shop.ready()
    other = shop.root.parent / "other"
    other.mkdir()
    (other / "tasks.py").write_text("import sys\n\ndef main():\n    return 'heavy' in sys.modules\n")
    attempt = shop.attempt("elsewhere")
    status = await shop.run_order(shop.order(attempt, root=str(other)), root=str(other))
    assert json.loads(status["output"]["inline"]) is False


@in_shop()
async def test_tasks_share_no_random_state(shop: Shop) -> None:
    # As numpy does it: a global state, which `seed()` makes anew.
    shop.install(
        **{
            "numpy/random": "import os\ndef seed():\n    global STATE\n    STATE = os.urandom(8).hex()\nseed()\n",
            "numpy/__init__": LIBRARY,
        }
    )
    shop.write(
        "tasks.py", "import random, numpy.random\n\ndef main():\n    return [random.random(), numpy.random.STATE]\n"
    )
    await shop.answer()
    await shop.ready()
    drawn = [await shop.answer() for _ in range(4)]
    assert len({first for first, _ in drawn}) == len({second for _, second in drawn}) == 4


@in_shop()
async def test_a_module_with_a_random_generator_of_its_own_is_not_preloaded(shop: Shop) -> None:
    shop.install(heavy=LIBRARY + "import random\nrng = random.Random()\n")
    shop.write("tasks.py", "import heavy\n\ndef main():\n    return heavy.rng.random()\n")
    await shop.answer()
    assert "heavy" in await shop.left_out("heavy has a random generator")
    assert len({await shop.answer() for _ in range(3)}) == 3


@in_shop()
async def test_a_killed_server_costs_no_task_and_is_replaced(shop: Shop) -> None:
    shop.write("tasks.py", TASKS + "\ndef note():\n    open('ledger', 'a').write('x')\n    return main()\n")
    assert await shop.answer() == IMPORTED
    server = await shop.ready()
    assert await shop.answer() == PRELOADED
    pid = next(iter(shop.servers.preloads._projects.values())).pid
    orders = [shop.order(shop.attempt(f"many{n}"), function="note") for n in range(20)]
    assert await shop.executor.start(orders, shop.news.put_nowait) == []
    os.kill(pid, signal.SIGKILL)
    for order in orders:
        assert (await shop.ended(order.attempt))["state"] == "success"
    assert (shop.root / "ledger").read_text() == "x" * 20
    assert not is_alive(pid)
    assert await shop.ready() is not server
    assert await shop.answer() == PRELOADED


@in_shop(Isolation.SHARED)
async def test_a_thread_that_came_with_the_import_does_not_end_a_shared_process(shop: Shop) -> None:
    shop.install(heavy=TROUBLES["it starts a thread"].replace("import", "import time,", 1))
    shop.write("tasks.py", "import os, heavy\n\ndef main():\n    return os.getpid()\n")
    await shop.answer()  # the first worker does not stay
    assert len({await shop.answer() for _ in range(5)}) == 1


@in_shop(Isolation.SHARED)
async def test_a_thread_that_a_call_leaves_still_ends_a_shared_process(shop: Shop) -> None:
    shop.install(heavy="")
    text = "import os, heavy\n\ndef main():\n    import threading, time\n    thread = threading.Thread(target=time.sleep, args=(0.3,))"
    shop.write("tasks.py", f"{text}\n    thread.start()\n    return os.getpid()\n")
    assert len({await shop.answer() for _ in range(3)}) == 3


@in_shop(Isolation.SHARED)
async def test_what_a_shared_process_imported_is_loaded_for_the_next_one(shop: Shop) -> None:
    assert await shop.answer() == IMPORTED
    await shop.ready()
    assert await shop.answer() == PRELOADED


NUMPY_TASKS = """
import os, sys
IS_PRELOADED = 'numpy' in sys.modules
import numpy

def main():
    # Large enough for BLAS to use its threads.
    square = numpy.ones((400, 400))
    return [IS_PRELOADED, float((square @ square).sum()), float(numpy.random.random()), os.getpid()]
"""


@pytest.fixture(scope="session")
def numpy_environment(request: pytest.FixtureRequest) -> Path:
    return environment_with(request.config, "numpy")


@pytest.mark.parametrize("isolation", [Isolation.FORK, Isolation.SHARED])
def test_the_real_numpy_is_preloaded_and_works_in_every_task(
    tmp_path: Path, numpy_environment: Path, isolation: Isolation
) -> None:
    """Its BLAS has threads since the import, which a fork loses and the first call starts again."""

    @in_shop(isolation, environment=numpy_environment)
    async def scene(shop: Shop) -> None:
        shop.write("tasks.py", NUMPY_TASKS)
        assert (await shop.answer())[:2] == [False, 400.0**3]
        await shop.ready()
        answers = [await shop.answer() for _ in range(6)]
        assert all(each[:2] == [True, 400.0**3] for each in answers)
        assert len({each[2] for each in answers}) == 6  # no two tasks draw the same numbers
        assert len({each[3] for each in answers}) == (6 if isolation is Isolation.FORK else 1)

    scene(tmp_path)
