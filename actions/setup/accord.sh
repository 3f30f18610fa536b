#!/usr/bin/env bash
# Runs accord from this checkout with the Python of setup.sh. usage: accord.sh ARGS
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
home=$(bash "$here/home.sh")
[ -e "$home/ready" ] || { echo "accord is not set up in this job: use accord-ci/accord/actions/setup before." >&2; exit 2; }
needs_web() { # by an input `sandbox` of an action, or by the words of the command
    local name
    for name in $(compgen -e | grep '^ACCORD_.*_SANDBOX$'); do
        [ -z "${!name}" ] || return 0
    done
    case " $* " in *" --sandbox "* | *" --sandbox="* | *" sandbox "* | *" demo "*) return 0 ;; esac
    [ "${1:-}" = board ] && [ "${2:-}" != issue ]
}
needs_doctor() {
    case "$* " in "doctor "* | "repos run doctor "*) return 0 ;; esac
    return 1
}
! needs_web "$@" || bash "$here/setup.sh" web >&2
[ "${1:-}" != run ] || bash "$here/setup.sh" mcp >&2 # some agents get the tools
! needs_doctor "$@" || bash "$here/setup.sh" doctor >&2
unset "${!PYTHON@}"
src=$(cd -P -- "$here/../../src" && pwd)
export PYTHONPATH=$src
case $src/ in "${GITHUB_WORKSPACE:-$src}"/*) export PYTHONPYCACHEPREFIX=$home/bytecode ;; esac # leave the workspace as it is
exec "$home/env/bin/python" -P -m accord "$@"
