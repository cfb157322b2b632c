#!/bin/sh
# What belongs into a report about a problem: versions, open work, dead letters. Changes nothing, prints no secret.
set -eu
cd "$(dirname "$0")/../../../.."
teams --version 2>/dev/null || echo "teams is not on the PATH"
teams status --workspace-root . 2>/dev/null || true
echo "dead letters:"
find .teams_runtime/internal_relay/dead -type f 2>/dev/null | sort || true
