#!/bin/sh
# Ignores SIGTERM, and so does its child.
trap '' TERM
( trap '' TERM; while :; do sleep 1; done ) &
echo "stubborn: ready $$ $!"
while :; do sleep 1; done
