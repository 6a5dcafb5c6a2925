#!/bin/sh
# Lines with pauses, each with the time at which it was written.
i=0
while [ "$i" -lt "${1:-10}" ]; do i=$((i + 1)); echo "tick $i $(date +%s%N)"; sleep 0.3; done
