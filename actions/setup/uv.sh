#!/usr/bin/env bash
# Installs the locked uv into DIR and prints its path. Changes nothing outside DIR.
# usage: uv.sh DIR
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
dir=$1
lock=$here/uv.txt
options=(--quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r "$lock")

run_pip() { # usage: run_pip PYTHON ARGS
    local python=$1 given=${REQUESTS_CA_BUNDLE:-}${CURL_CA_BUNDLE:-} file
    [[ $given || $("$python" -I -m pip config list) == *.cert=* ]] || # pip before 24.2 has only its own certificates
        for file in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
            /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
            [ ! -f "$file" ] || { export PIP_CERT=$file && break; }
        done
    "$python" -I -m pip "${@:2}" "${options[@]}" >&2
}

if ! cmp -s -- "$lock" "$dir/uv.txt"; then
    command -v python3 >/dev/null || { echo "accord needs python3 on the PATH: install Python 3.11 or newer." >&2; exit 1; }
    rm -rf -- "$dir"
    if python3 -I -c 'import pip' 2>/dev/null; then # a virtual environment of its own takes three times as long
        run_pip python3 install --target "$dir" --no-compile
    else
        python3 -I -m venv "$dir" >&2 || {
            echo "accord could not make a virtual environment: install the venv module of this Python (python3-venv)." >&2
            exit 1
        }
        run_pip "$dir/bin/python" install
    fi
    cp -- "$lock" "$dir/uv.txt"
fi
printf '%s\n' "$dir/bin/uv"
