#!/usr/bin/env bash
# Prints the folder of accord's tools, one per lock file, so that two versions in one job do not interfere.
# ACCORD_HOME on a self-hosted runner is a permanent parent folder.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
parent=${ACCORD_HOME:-${RUNNER_TEMP:?accord needs RUNNER_TEMP, which every runner sets}}
read -r sum size _ < <(cat -- "$here/../../uv.lock" "$here/uv.txt" | cksum)
printf '%s/accord-%s-%s\n' "$parent" "$sum" "$size"
