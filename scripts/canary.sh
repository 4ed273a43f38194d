#!/bin/sh
# Tries the package with the newest or the oldest versions of its dependencies that pyproject.toml allows: unit tests and
# examples, in an environment of its own. Usage: scripts/canary.sh newest|oldest [PYTEST WORDS]. Needs uv (extra `release`).
set -eu
which=$1
shift
cd "$(dirname "$0")/.."

case $which in
    newest) how="--resolution highest --upgrade" ;;
    oldest) how="--resolution lowest-direct" ;;
    *) echo "usage: scripts/canary.sh newest|oldest" >&2; exit 2 ;;
esac
python=${PYTHON:-python3}
place=build/canary/$which-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
uv venv --quiet --clear --python "$python" "$place"
# shellcheck disable=SC2086
VIRTUAL_ENV=$place uv pip install --quiet $how --editable '.[test]'
VIRTUAL_ENV=$place uv pip list --quiet > "$place/versions.txt"
echo "$which: $(wc -l < "$place/versions.txt") packages, listed in $place/versions.txt"
if [ $# = 0 ]; then set -- tests/unit tests/acceptance/test_examples.py; fi
"$place/bin/python" -m pytest -q -n "${JOBS:-2}" "$@"
