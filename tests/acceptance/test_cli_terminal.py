"""What a terminal gets: the live view, and logs that cannot do it any harm."""

from __future__ import annotations

import os
import pty
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
MEMORY_LIMIT = 400 * 1024 * 1024


def on_terminal(folder: Path, environment: dict[str, str], *args: str) -> tuple[int, str]:
    """Runs `ork …` with a terminal for stdout and stderr; gives its exit code and all that was written."""
    screen, theirs = pty.openpty()
    environment = {**environment, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "ork", *args]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT)),
    )
    os.close(theirs)
    written = bytearray()
    while True:
        try:
            data = os.read(screen, 65536)
        except OSError:  # the other end is closed
            break
        written += data
    os.close(screen)
    return process.wait(60), written.decode("utf-8", "replace").replace("\r\n", "\n")


def without_escapes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_the_live_view_is_inline_and_gives_the_cursor_back(tmp_path: Path, plain_environment: dict[str, str]) -> None:
    (tmp_path / "workflow.yaml").write_text(
        "name: live\ntasks:\n  a: {command: echo 1}\n  b: {command: [sleep, '0.7'], depends_on: [a]}\n"
    )
    code, text = on_terminal(tmp_path, plain_environment, "run")
    assert code == 0
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert "\x1b[?1049" not in text
    assert "▶" in text
    assert "1 of 2" in text
    lasting = without_escapes(text.rpartition("\x1b[J")[2])
    assert lasting.splitlines()[0].startswith("  ✓ b ")
    assert "✓ success in " in lasting


def test_no_color_takes_the_colour_but_not_the_view(tmp_path: Path, plain_environment: dict[str, str]) -> None:
    (tmp_path / "workflow.yaml").write_text("name: live\ntasks:\n  a: {command: echo 1}\n")
    _, text = on_terminal(tmp_path, {**plain_environment, "CLICOLOR": "0"}, "run")
    assert "\x1b[32m" in text


def test_hostile_logs_are_harmless_on_a_terminal(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli
) -> None:
    (tmp_path / "evil.py").write_text(
        "import sys\n"
        "def main():\n"
        "    sys.stdout.buffer.write(b'\\x1b]0;owned\\x07\\x1b[2J\\x9b31m over\\rwritten \\xff\\xfe \\xe2\\x80\\xae\\n')\n"
    )
    (tmp_path / "workflow.yaml").write_text("name: evil\ntasks:\n  a: {file: evil.py}\n")
    assert ork_cli("run", cwd=tmp_path).returncode == 0
    code, text = on_terminal(tmp_path, plain_environment, "logs", "@last", "a")
    assert code == 0
    assert not any(character < " " and character != "\n" for character in text)
    assert "␛]0;owned␇␛[2J" in text
    assert "over␍written" in text
    assert "<U+202E>" in text


def test_a_log_of_a_hundred_megabytes_without_a_newline_needs_little_memory(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli
) -> None:
    (tmp_path / "workflow.yaml").write_text(
        "name: long\ntasks:\n  a: {command: [sh, -c, 'head -c 100000000 /dev/zero | tr \"\\\\0\" x >&2']}\n"
    )
    assert ork_cli("run", cwd=tmp_path).returncode == 0
    code, text = on_terminal(tmp_path, plain_environment, "logs", "@last", "a")
    assert code == 0
    assert text.startswith("xxxx")
    assert text.endswith(" more characters\n")
    assert len(text) < 5000


def test_a_failure_with_hostile_text_does_not_reach_the_terminal(
    tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    (tmp_path / "evil.py").write_text("def main():\n    raise ValueError('\\x1b[2J\\x07' + 'x' * 100000)\n")
    (tmp_path / "workflow.yaml").write_text("name: evil\ntasks:\n  a: {file: evil.py}\n")
    code, text = on_terminal(tmp_path, plain_environment, "run")
    assert code == 1
    assert "ValueError: ␛[2J␇xxx" in text
    assert "\x07" not in text
    assert len(text) < 10000


def test_tick_speaks_words_to_people_and_json_to_programs(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli
) -> None:
    (tmp_path / "ork.yaml").touch()
    assert ork_cli("tick", cwd=tmp_path).stdout.startswith('{"steps": ')
    assert on_terminal(tmp_path, plain_environment, "tick") == (0, "nothing was due; nothing is scheduled\n")
    assert on_terminal(tmp_path, plain_environment, "tick", "--json")[1].startswith('{"steps": ')


def test_long_messages_are_wrapped_between_words(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli
) -> None:
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks:\n  a: {command: 'true'}\n")
    assert ork_cli("run", cwd=tmp_path).returncode == 0
    for command, label in (("run", "error[ORK812]: "), ("doctor", "✗ shared       ")):
        _, text = on_terminal(tmp_path, plain_environment, "--objects", f"file:{tmp_path}/else", command)
        lines = without_escapes(text).splitlines()
        assert any(line.startswith(label) for line in lines)
        too_long = [line[len(label) :].strip() for line in lines if len(line) > 80]
        assert not any(" " in words for words in too_long)  # but for a path that is longer than a line
        assert "record this one in its place while nothing runs" in " ".join(" ".join(lines).split())


def test_a_message_of_ork_itself_is_shown_whole(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks:\n  a: {file: a.py}\n")
    (tmp_path / "a.py").write_text(
        "import ork\ndef main():\n    return ork.defer(ork.http_job('http://127.0.0.1:9/a/long/path'))\n"
    )
    done = ork_cli("run", cwd=tmp_path)
    assert done.returncode == 1
    assert 'add `outbound: {allow: ["127.0.0.1:9"]}` to ork.yaml' in " ".join(done.stderr.split())
