#!/bin/sh
# A bar drawn five hundred times, then a newline written as \r\n.
i=0
while [ "$i" -lt 500 ]; do printf '\rdownloading %3d%%' $((i * 100 / 499)); i=$((i + 1)); done
printf '\r\nplain after crlf\r\nlast line\n'
