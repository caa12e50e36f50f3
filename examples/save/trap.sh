#!/bin/bash
#GANG --grace=30
# A job in bash that counts, and saves how far it came when it is stopped.
#
# bash runs a trap only between two commands. So the work runs in the background and the
# shell waits for it: `wait` is interrupted by the signal, a foreground command is not.
count=0
[ -e count.txt ] && count=$(cat count.txt)
echo "begins at $count"

save() {
	echo "$count" > count.txt.new && mv count.txt.new count.txt
	echo "saved $count: $(sed -n 's/^text=//p' "$GANG_STATUS_FILE")"
	exit 0
}
trap save TERM

while [ "$count" -lt "${1:-1000}" ]; do
	sleep 0.05 & # the real work
	wait $!
	count=$((count + 1))
done
echo "done at $count"
