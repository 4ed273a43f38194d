#!/bin/sh
# Writes the lock files of the images anew: the newest version of everything that pyproject.toml allows, with hashes and without
# addresses. Usage: scripts/lock.sh [OPTIONS OF uv pip compile], such as --upgrade-package fastapi. Needs uv (extra `release`).
set -eu
cd "$(dirname "$0")/.."

compile() { uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url "$@"; }

extras=$(python3 - <<'PYTHON'
import tomllib
for_people_who_develop = {"docs", "test", "dev", "release"}
with open("pyproject.toml", "rb") as file:
    names = tomllib.load(file)["project"]["optional-dependencies"]
print(*[f"--extra {name}" for name in names if name not in for_people_who_develop])
PYTHON
)
# shellcheck disable=SC2086
compile pyproject.toml $extras "$@" --output-file deploy/requirements.lock
echo hatchling | compile - "$@" --output-file deploy/build.lock
