#!/bin/sh
# Ends at once; a child of it keeps the pipe for half a minute.
( echo "grandchild: started $(sh -c 'echo $PPID')"; sleep 30; echo "grandchild: too late" ) &
echo "parent: done"
exit 0
