#!/usr/bin/env bash
# Runs accord from this checkout with the Python of setup.sh. usage: accord.sh ARGS
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
home=$(bash "$here/home.sh")
[ -e "$home/ready" ] || { echo "accord is not set up in this job: use accord-ci/accord/actions/setup before." >&2; exit 2; }
unset "${!PYTHON@}"
src=$(cd -P -- "$here/../../src" && pwd)
export PYTHONPATH=$src PYTHONPYCACHEPREFIX=$home/bytecode # not beside the sources
exec "$home/env/bin/python" -P -m accord "$@"
