"""Rust programs are compiled by their worker, once per content, and speak the protocol of any command."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.integration.workshop import Workshop, in_workshop

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("cargo") is None or shutil.which("rustc") is None, reason="no cargo and rustc on this machine"
    ),
]

ECHO = """
use std::io::Read;
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("{{\\"input\\": {}, \\"words\\": {}}}", text, words.len());
}
"""


async def run(shop: Workshop, path: str, *argv: str, **spec: Any) -> dict[str, Any]:
    attempt = shop.attempt(f"task{len(shop.made)}")
    builds = str(shop.root.parent / "builds")
    status = await shop.run(attempt, kind="rust", path=path, argv=list(argv), builds=builds, **spec)
    return {**status, "log": shop.log(attempt).decode()}


def output_of(status: dict[str, Any]) -> Any:
    assert status["state"] == "success", status
    return json.loads(status["output"]["inline"])


@in_workshop
async def test_a_single_file_is_built_once_and_run_as_a_command(shop: Workshop) -> None:
    shop.write("main.rs", ECHO)
    first = await run(shop, "main.rs", "a", "b", inputs={"n": {"value": 1}})
    assert output_of(first) == {"input": {"n": 1}, "words": 2}
    assert "building main.rs with rustc" in first["log"]
    second = await run(shop, "main.rs", inputs={"n": {"value": 2}})
    assert output_of(second) == {"input": {"n": 2}, "words": 0}
    assert "building" not in second["log"]


@in_workshop
async def test_a_change_is_built_again_also_in_a_module_beside_it(shop: Workshop) -> None:
    shop.write("main.rs", 'mod answer;\nfn main() { println!("{}", answer::ANSWER); }')
    shop.write("answer.rs", "pub const ANSWER: u8 = 41;")
    assert output_of(await run(shop, "main.rs")) == 41
    shop.write("answer.rs", "pub const ANSWER: u8 = 42;")
    assert output_of(await run(shop, "main.rs")) == 42


@in_workshop
async def test_a_cargo_project_is_built_once_with_what_it_takes_from_beside_it(shop: Workshop) -> None:
    shop.write("lib/Cargo.toml", '[package]\nname = "lib"\nversion = "0.1.0"\nedition = "2021"\n')
    shop.write("lib/src/lib.rs", "pub fn answer() -> u8 { 1 }")
    shop.write(
        "app/Cargo.toml",
        '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nlib = { path = "../lib" }\n',
    )
    shop.write("app/src/main.rs", 'fn main() { println!("{}", lib::answer()); }')
    env = {"CARGO_NET_OFFLINE": {"value": "true"}}
    assert output_of(await run(shop, "app", env=env)) == 1
    # Cargo has written its lock file, which is part of the content.
    assert output_of(await run(shop, "app", env=env)) == 1
    third = await run(shop, "app", env=env)
    assert "building" not in third["log"]
    shop.write("lib/src/lib.rs", "pub fn answer() -> u8 { 2 }")
    assert output_of(await run(shop, "app", env=env)) == 2


@in_workshop
async def test_an_error_of_the_compiler_is_told_and_not_tried_again(shop: Workshop) -> None:
    shop.write("main.rs", "fn main() { nothing }")
    status = await run(shop, "main.rs")
    assert (status["state"], status["failure"]["kind"]) == ("failed", "start")
    assert "cannot find value `nothing`" in status["failure"]["message"]
    assert "main.rs:1:13" in status["failure"]["message"]
    assert status["failure"]["detail"]["retry"] is False


@in_workshop
async def test_a_panic_fails_as_any_command_does(shop: Workshop) -> None:
    shop.write("main.rs", 'fn main() { panic!("no rows") }')
    status = await run(shop, "main.rs")
    assert (status["failure"]["kind"], status["exit_code"]) == ("exit", 101)
    assert "no rows" in status["log"]


@in_workshop
async def test_a_project_without_a_program_is_told(shop: Workshop) -> None:
    shop.write("app/Cargo.toml", '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n')
    shop.write("app/src/lib.rs", "pub fn answer() -> u8 { 1 }")
    status = await run(shop, "app")
    assert "library only" in status["failure"]["message"]
