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
is_done() { [ -e "$done" ] && [ -x "$home/env/bin/python" ]; }
! is_done || exit 0

. "$here/environment.sh"

mkdir -p -- "$home"
exec 9> "$home/lock" # the lock ends with this process and its children, even if they are killed
wait_for_lock='import fcntl, signal; signal.alarm(300); fcntl.flock(9, fcntl.LOCK_EX)' # macOS has no program flock
code=0
! command -v python3 >/dev/null || python3 -I -c "$wait_for_lock" || code=$? # without Python, uv.sh ends the set-up
case $code in
    0) ;;
    142) why="Another set-up of accord in $home has not ended for 5 minutes. End it and run this job again." ;; # SIGALRM
    *) why="The file $home/lock cannot be locked. Put RUNNER_TEMP, or ACCORD_HOME if it is set, on a local disk." ;;
esac
[ "$code" = 0 ] || { echo "::error::$why" >&2; exit 1; }
leave() {
    [ -e "$done" ] ||
        echo "::error::accord could not be set up. Behind a proxy or a mirror, set HTTPS_PROXY or PIP_INDEX_URL." >&2
}
trap leave EXIT
! is_done || exit 0
if [ -e "$home/ready" ] && [ ! -x "$home/env/bin/python" ]; then
    rm -rf -- "$home"/{env,python,ready*,uv} # from a cache, and this machine has another Python
fi

echo "Setting up accord in $home"
export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1}
export UV_CACHE_DIR=$home/cache UV_PYTHON_INSTALL_DIR=$home/python UV_PYTHON_PREFERENCE=system
cd -- "$here/../.." # ignore .python-version or venv.py of the workspace
uv=$(bash "$here/uv.sh" "$home/uv")
"$uv" export --quiet --frozen "${packages[@]}" --no-emit-project --output-file "$home/packages.txt" >/dev/null
[ -e "$home/ready" ] || "$uv" venv --quiet --clear --python '>=3.11' "$home/env"
"$uv" pip install --quiet --no-deps --require-hashes --python "$home/env/bin/python" --requirements "$home/packages.txt"
touch -- "$home/ready" "$done"
