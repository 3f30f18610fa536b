#!/usr/bin/env bash
# Installs the locked uv into DIR and prints its path. Changes nothing outside DIR.
# usage: uv.sh DIR
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
dir=$1
lock=$here/uv.txt
options=(--quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r "$lock")

if ! cmp -s -- "$lock" "$dir/uv.txt"; then
    command -v python3 >/dev/null || { echo "accord needs python3 on the PATH: install Python 3.11 or newer." >&2; exit 1; }
    rm -rf -- "$dir"
    if python3 -I -c 'import pip' 2>/dev/null; then # a virtual environment of its own takes three times as long
        python3 -I -m pip install --target "$dir" --no-compile "${options[@]}" >&2
    else
        python3 -I -m venv "$dir" >&2 || {
            echo "accord could not make a virtual environment: install the venv module of this Python (python3-venv)." >&2
            exit 1
        }
        "$dir/bin/python" -I -m pip install "${options[@]}" >&2
    fi
    cp -- "$lock" "$dir/uv.txt"
fi
printf '%s\n' "$dir/bin/uv"
