#!/bin/sh
echo "first complaint" >&2
echo "second complaint" >&2
exit 3
