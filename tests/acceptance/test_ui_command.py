"""`ork ui`: it signs a browser in at a server that runs, starts one where none does, and says what is wrong."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import Place
from tests.acceptance.waiting import wait_until
from tests.serving import start_ork

HERE = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}


def port_of(url: str) -> str:
    return url.rpartition(":")[2]


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return str(taken.getsockname()[1])


def sign_in(address: str) -> tuple[int, Any]:
    """As the page does with the ticket in its address."""
    url, _, ticket = address.strip().partition("/ui/#ticket=")
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("POST", "/api/v1/session", json.dumps({"ticket": ticket}), HERE)
    response = connection.getresponse()
    found = json.loads(response.read())
    connection.close()
    return response.status, found


def browser(folder: Path, place: Place) -> Path:
    """A browser that writes down what it opens."""
    script, opened = folder / "browser", folder / "opened"
    script.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    script.chmod(0o755)
    place.environment["BROWSER"] = str(script)
    return opened


def test_it_prints_an_address_that_signs_in_once(place: Place) -> None:
    server = place.serve()
    said = place.ork("ui", "--no-browser", "--port", port_of(server.url))
    address = said.splitlines()[0]
    assert address.startswith(f"{server.url}/ui/#ticket=")
    status, session = sign_in(address)
    assert (status, session["name"], session["role"]) == (201, "first", "admin")
    assert sign_in(address)[0] == 401


def test_a_ticket_of_one_server_works_at_another_on_the_same_store(place: Place) -> None:
    one, other = place.serve(), place.serve()
    address = place.ork("ui", "--no-browser", "--port", port_of(one.url)).splitlines()[0]
    assert sign_in(address.replace(one.url, other.url))[0] == 201
    assert sign_in(address)[0] == 401


def test_it_opens_the_browser_and_prints_no_secret(place: Place, tmp_path: Path) -> None:
    opened = browser(tmp_path, place)
    server = place.serve()
    said = place.ork("ui", "--port", port_of(server.url))
    assert "ticket" not in said
    assert f"{server.url}/ui/" in said
    assert sign_in(opened.read_text())[0] == 201


def test_without_a_display_it_prints_the_address(place: Place) -> None:
    server = place.serve()
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        place.environment.pop(name, None)
    assert "/ui/#ticket=" in place.ork("ui", "--port", port_of(server.url))


def test_a_remote_server_needs_its_token(place: Place) -> None:
    server = place.serve()
    remote = {**place.environment, **server.remote}
    place.environment.update(remote)
    assert place.ork("ui", "--no-browser").startswith(f"{server.url}/ui/#ticket=")
    place.environment["ORK_TOKEN"] = "ork_" + "wrong0123456789abcdefghijkl" * 2
    said = place.ork("ui", "--no-browser", code=4)
    assert "does not sign you in: this token is unknown or revoked" in said
    assert "ORK_TOKEN" in said
    place.environment["ORK_SERVER"] = f"http://127.0.0.1:{free_port()}"
    said = place.ork("ui", "--no-browser", code=1)
    assert "cannot reach" in said
    assert "is `ork serve` running there?" in said


def test_a_server_of_another_project_is_named(place: Place, tmp_path: Path) -> None:
    server = place.serve()
    (tmp_path / ".ork/token").write_text("ork_" + "other0123456789abcdefghijkl" * 2)
    said = place.ork("ui", "--no-browser", "--port", port_of(server.url), code=4)
    assert "does it serve another project?" in said


def test_where_no_server_runs_it_starts_one_and_opens_the_page(place: Place, tmp_path: Path) -> None:
    opened, port = browser(tmp_path, place), free_port()
    if "ORK_STORE" in place.environment:  # shared with other machines
        assert "`ork ui --server URL`" in place.ork("ui", "--port", port, code=4)
        return
    process = start_ork(tmp_path, place.environment, "ui", "--port", port)
    try:
        wait_until(lambda: opened.exists() and opened.read_text().endswith("\n"))
        status, session = sign_in(opened.read_text())
        assert (status, session["role"]) == (201, "admin")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert f"ui=http://127.0.0.1:{port}/ui/" in out
        assert "ticket" not in out
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_serve_prints_the_address_without_a_secret(place: Place) -> None:
    process = start_ork(place.folder, place.environment, "serve", "--port", "0")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.partition("url=")[2].split()[0]
        assert f"ui={url}/ui/" in line
        assert (place.folder / ".ork/token").read_text().strip() not in line
        assert "ticket" not in line
    finally:
        process.kill()
        process.communicate()


def test_what_is_no_ork_server_is_named(place: Place) -> None:
    process = subprocess.Popen(
        ["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, cwd=place.folder,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = process.stdout.readline().partition("port ")[2].split()[0]
        assert "is it an Ork server?" in place.ork("ui", "--no-browser", "--port", port, code=1)
    finally:
        process.kill()
        process.communicate()
