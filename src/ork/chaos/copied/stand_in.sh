# The stand-in of a task in a container: the same as recorded.py, for images without Python. It needs `flock`.
lock=/ledger/$(echo "${ORK_ATTEMPT_ID%/*}" | tr / !).lock
write() { echo "$1 $ORK_ATTEMPT_ID 0 $(date +%s)" >> /ledger/ledger; }
exec 9>> "$lock"
flock -n 9
[ $? -eq 1 ] && write overlap
write start
sleep "$CHAOS_SECONDS"
if [ "$ORK_ATTEMPT" -le "$CHAOS_FAILURES" ]; then write failed; exit 1; fi
write end
