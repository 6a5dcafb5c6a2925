#!/bin/sh
# Bytes that are not UTF-8, NUL, colours, wide characters, no newline at the end.
printf 'plain\nlatin1 caf\351\nnul \000 inside\n\033[31mred\033[0m text\nsnow \342\230\203 and rocket \360\237\232\200\n'
printf '\377\376\000\200\nno newline at the end'
