#!/bin/sh
# Writes its result to the output file; what it prints is log.
set -eu
mkdir -p out
printf 'the cat saw the dog\nand the dog saw the bird\n' > out/text
echo "collected $(wc -l < out/text) lines"
printf '{"path": "%s"}' out/text > "$ORK_OUTPUT_FILE"
