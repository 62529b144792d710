# Shared by the set-up scripts: how a step is announced, how one fails. Sourced, never run.
# shellcheck shell=bash

Say() { printf '[setup] %s\n' "$*" >&2; }

# Fail MESSAGE: one clear sentence, and the end of the set-up.
Fail() {
    printf '[setup] error: %s\n' "$*" >&2
    exit 1
}

# Quiet LOG COMMAND...: runs a talkative command; its output is shown only when it fails.
Quiet() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 30 "$log" >&2
        return 1
    }
}
