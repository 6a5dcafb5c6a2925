#!/bin/sh
# A line of a million characters with an é across the first cut, then a short one.
printf '%065535dé%0934464d\nshort\n' 0 0
