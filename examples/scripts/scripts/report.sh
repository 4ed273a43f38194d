#!/bin/sh
# Its one upstream task's output is on stdin, as JSON.
set -eu
input=$(cat)
echo "received $input"
printf '{"report": %s, "same_in_file": %s}' "$input" "$(cat "$ORK_INPUT_FILE")" > "$ORK_OUTPUT_FILE"
