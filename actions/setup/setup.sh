#!/usr/bin/env bash
# Installs uv, Python and the locked packages into one folder (home.sh); a second call does nothing.
# usage: setup.sh [web|mcp|doctor]   Also the packages of the local GitHub and the board's pages, of the tools for agents, or
# zizmor for the general checks of doctor; few jobs use them.
# The caller's Python, PATH, GITHUB_ENV and workspace stay unchanged.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
[ "${RUNNER_OS:-}" != Windows ] || { echo "::error::accord runs on Linux and macOS runners only." >&2; exit 1; }
home=$(bash "$here/home.sh")
done=$home/ready
# PyGithub needs the last three only for apps and for secrets, which accord does not manage
packages=(--no-dev --prune=cryptography --prune=pyjwt --prune=pynacl)
case ${1:-} in
    web | mcp | doctor) done=$home/ready-$1 && packages=(--no-dev --extra "$1") ;;
esac
if [ -e "$home/ready" ] && [ ! -x "$home/env/bin/python" ]; then
    rm -rf -- "$home" # from a cache, and this machine has another Python
fi
[ ! -e "$done" ] || exit 0

. "$here/environment.sh"

mkdir -p -- "${home%/*}"
waited=0
until mkdir -- "$home.lock" 2>/dev/null; do
    [ ! -e "$done" ] || exit 0
    [ "$waited" -lt 300 ] || { echo "::error::accord waits for another set-up in vain: delete $home.lock" >&2; exit 1; }
    sleep 1
    waited=$((waited + 1))
done
leave() {
    rmdir -- "$home.lock"
    [ -e "$done" ] ||
        echo "::error::accord could not be set up. Behind a proxy or a mirror, set HTTPS_PROXY or PIP_INDEX_URL." >&2
}
trap leave EXIT
[ ! -e "$done" ] || exit 0

echo "Setting up accord in $home"
mkdir -p -- "$home"
export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1}
export UV_CACHE_DIR=$home/cache UV_PYTHON_INSTALL_DIR=$home/python UV_PYTHON_PREFERENCE=system
cd -- "$here/../.." # ignore .python-version or venv.py of the workspace
uv=$(bash "$here/uv.sh" "$home/uv")
"$uv" export --quiet --frozen "${packages[@]}" --no-emit-project --output-file "$home/packages.txt" >/dev/null
[ -e "$home/ready" ] || "$uv" venv --quiet --clear --python '>=3.11' "$home/env"
"$uv" pip install --quiet --no-deps --require-hashes --python "$home/env/bin/python" --requirements "$home/packages.txt"
touch -- "$home/ready" "$done"
