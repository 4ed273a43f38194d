#!/bin/sh
# Makes sure that the virtual environment VENV holds this package with the extra EXTRA ("run": none).
# An environment that already does is left alone. Usage: scripts/venv.sh VENV run|test|dev
set -eu

venv=$1
extra=$2
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"

# A name on PATH may be a shim that fails when called, so each candidate is tried.
works() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
has_venv() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }

find_python() {
    for name in ${PYTHON:-} python3.13 python3.12 python3.11 python3 python /usr/bin/python3; do
        if works "$name" && has_venv "$name"; then
            echo "$name"
            return
        fi
    done
    return 1
}

explain_and_exit() {
    echo "No Python of 3.11 or newer with the venv module was found." >&2
    echo "On Debian and Ubuntu: apt-get install python3-venv. Or name one: make PYTHON=/path/to/python3 …" >&2
    exit 1
}

install_venv_module() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && works python3 || return 1
    echo "python3-venv is missing: installing it" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >&2
}

if ! works "$venv/bin/python"; then
    python=$(find_python) || { install_venv_module && python=$(find_python); } || explain_and_exit
    echo "$venv: $("$python" -V), $python" >&2
    "$python" -m venv --clear "$venv"
fi

if ! "$venv/bin/python" scripts/requirements_met.py "$extra"; then
    case $extra in
        run) target=. ;;
        *) target=".[$extra]" ;;
    esac
    "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --editable "$target"
fi

# The package is installed by reference, so nobody else compiles it.
"$venv/bin/python" -m compileall -q src
