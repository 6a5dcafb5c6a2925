#!/bin/sh
# As many numbered lines as asked for, as fast as possible.
exec seq -f 'line %09.0f the quick brown fox jumps over the lazy dog' 0 $(($1 - 1))
