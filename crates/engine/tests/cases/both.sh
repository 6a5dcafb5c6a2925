#!/bin/sh
# A thousand numbered lines on each stream, in turns.
i=0
while [ "$i" -lt 1000 ]; do echo "out $i"; echo "err $i" >&2; i=$((i + 1)); done
