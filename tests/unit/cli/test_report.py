"""The page of a run: complete, bounded, and a picture of text that does nothing."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser

from ork.cli.report import page as pages
from ork.cli.report.page import Printed, RunReport, page
from ork.cli.report.timeline import MOST_ROWS, chosen
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, Task, TaskStatus
from tests.unit.status.sample_runs import START, at, done, failed, spec, view_of

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e\ud800&amp;"
RUN = RunId("7f3kaaaaaaaa")


def attempt(
    name: str, index: int | None = None, number: int = 1, status: str = "success", seconds: float = 0.2
) -> Attempt:
    key = AttemptKey(RUN, TaskKey(name, index), number)
    kind = AttemptStatus(status)
    return Attempt(key, kind, "process", "x", "h", START, started_at=at(0.1), finished_at=at(0.1 + seconds))


def written(
    tasks: list[Task], attempts: list[Attempt], log: Callable[[AttemptKey], Printed] = lambda _key: Printed("words", 0)
) -> str:
    names = dict.fromkeys(task.key.name for task in tasks)
    view = view_of([spec(name) for name in names], tasks, status=RunStatus.FAILED, error=HOSTILE)
    view.run = replaced(view.run, params={"q": HOSTILE})
    return "".join(page(RunReport(view, attempts, at(10), log)))


class Elements(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_nothing_that_came_from_a_task_is_markup_or_acts() -> None:
    broken = failed("load", Failure(FailureKind.EXCEPTION, HOSTILE, {"tail": [HOSTILE], "inputs": {"x": HOSTILE}}))
    text = written(
        [done("extract", output=f'"{HOSTILE}"'), broken], [attempt("extract")], lambda _key: Printed(HOSTILE, 0)
    )
    found = Elements(text)
    assert not found.names & {"script", "img", "iframe", "link", "a", "object", "form"}
    assert not {name for name in found.attributes if name.startswith("on") or name in ("style", "src", "href")}
    assert not set(text) & {"\x1b", "\u202e", "\ud800"}
    assert text.count("&lt;script&gt;") >= 5


def test_the_policy_allows_the_style_of_the_page_and_nothing_else() -> None:
    text = written([done("a")], [attempt("a")])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)
    assert policy is not None
    assert style is not None
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert text.count("<style") == 1
    assert "http" not in text.replace("http-equiv", "").replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_everything_is_on_the_page() -> None:
    broken = failed("load", Failure(FailureKind.EXIT, "exit code 3", {"tail": ["the last words"]}))
    tries = [attempt("extract"), attempt("load", number=1, status="failed"), attempt("load", number=2, status="failed")]
    text = written(
        [done("extract", output='{"rows":12}'), broken], tries, lambda key: Printed(f"log of {key.number}", 7)
    )
    for part in ("exit code 3", "the last words", "{&quot;rows&quot;:12}", "log of 2", "load · 2", "✗ failed", RUN):
        assert part in text, part
    assert "7 bytes before this are omitted: ork logs 7f3k load --attempt 2" in text


def test_of_a_huge_run_what_failed_is_shown_and_the_rest_is_counted() -> None:
    tasks = [done("a", index=number) for number in range(3000)]
    tasks[2999] = Task(
        TaskKey("a", 2999), TaskStatus.FAILED, "process", attempt=1, failure=Failure(FailureKind.EXIT, "boom")
    )
    tries = [attempt("a", number, status="failed" if number == 2999 else "success") for number in range(3000)]
    read: list[AttemptKey] = []

    def log(key: AttemptKey) -> Printed:
        read.append(key)
        return Printed("x", 0)

    text = written(tasks, tries, log)
    assert text.count("<tr>") == pages.MOST_TASKS + 1
    assert "2,000 tasks more" in text
    assert "a[2999]" in text
    assert (len(read), read[0].task.index) == (pages.MOST_LOGS, 2999)


def test_the_timeline_keeps_what_failed_and_what_took_longest() -> None:
    tries = [attempt("a", number, seconds=0.001 * number) for number in range(500)]
    tries[3] = attempt("a", 3, status="failed")
    kept = [each.key.task.index for each in chosen(tries)]
    assert len(kept) == MOST_ROWS
    assert kept == [3, *range(500 - MOST_ROWS + 1, 500)]


def test_a_run_that_has_not_begun_has_a_page_as_well() -> None:
    view = view_of([spec("a")], [], status=RunStatus.PENDING, started_at=None)
    text = "".join(page(RunReport(view, [], START, lambda _key: Printed("", 0))))
    assert "pending" in text
    assert text.endswith("</html>\n")
