#!/usr/bin/env bash
# Installs the locked uv into DIR and prints its path. Changes nothing outside DIR.
# usage: uv.sh DIR
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
dir=$1
lock=$here/uv.txt

if ! cmp -s -- "$lock" "$dir/uv.txt"; then
    command -v python3 >/dev/null || { echo "accord needs python3 on the PATH: install Python 3.11 or newer." >&2; exit 1; }
    rm -rf -- "$dir"
    python3 -I -m venv "$dir" >&2 || {
        echo "accord could not make a virtual environment: install the venv module of this Python (python3-venv)." >&2
        exit 1
    }
    "$dir/bin/python" -I -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock" >&2
    cp -- "$lock" "$dir/uv.txt"
fi
printf '%s\n' "$dir/bin/uv"
