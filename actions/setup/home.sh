#!/usr/bin/env bash
# Prints the folder that holds accord's tools: one for each lock file, so that two versions in one job do not meet.
# ACCORD_HOME, set for a self-hosted runner, names a parent that outlives the job.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
parent=${ACCORD_HOME:-${RUNNER_TEMP:?accord needs RUNNER_TEMP, which every runner sets}}
read -r sum size _ < <(cat -- "$here/../../uv.lock" "$here/uv.txt" | cksum)
printf '%s/accord-%s-%s\n' "$parent" "$sum" "$size"
