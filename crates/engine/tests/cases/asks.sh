#!/bin/sh
# Asks without a newline and reads the answer.
printf 'Continue? [y/N] '
if read -r answer; then exit 9; fi
printf '\nno answer\n'
