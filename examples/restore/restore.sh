#!/bin/bash
# Counts to $GOAL and loses no number and repeats none, however often it is stopped: its whole
# state is a small checkpoint that the controller keeps.
#
#   gsubmit --export=ALL,GOAL=1000 examples/restore/restore.sh
#
#GANG --job-name=restore --requeue --grace=10
goal=${GOAL:-1000} pace=${PACE:-0.01} result=${RESULT:-counted.txt}

# What the last run saved; nothing at the first start.
state=$(base64 -d <<< "$CHECKPOINT_DATA")
n=$(tail -n 1 <<< "$state")
n=${n:-0}
[ "$n" -gt 0 ] && echo "run $GANG_RESTART_COUNT goes on behind $n"

save() { gckpt put - <<< "$state"; }

# The handler only sets a flag: the state is whole between two steps, and nowhere else.
stop=
trap 'stop=1' TERM

while [ "$n" -lt "$goal" ]; do
	sleep "$pace" & wait $! # the work; wait lets the trap run at once
	n=$((n + 1))
	state+=${state:+$'\n'}$n
	if [ $((n % 10)) -eq 0 ] || [ -n "$stop" ]; then
		save && systemd-notify WATCHDOG=1 "--status=counted to $n"
	fi
	if [ -n "$stop" ]; then
		systemd-notify STOPPING=1
		exit 143
	fi
done
printf '%s\n' "$state" > "$result"
