#!/bin/bash
#GANG --signal=B:USR1@60 --grace=30
# B: sends the notice to this shell alone, a minute before the end. It tells a program that
# knows nothing of signals to finish, by a file that the program looks for.
trap 'touch finish-please' USR1
rm -f finish-please

( # stands for a program that nobody can change
	n=0
	until [ -e finish-please ]; do
		sleep 0.05
		n=$((n + 1))
	done
	echo "$n steps" > result.txt
) &
# wait is interrupted by the notice and has to be called again; 128 and more is the signal.
program=$!
wait $program
while [ $? -gt 128 ]; do
	wait $program
done
echo "finished in time: $(cat result.txt)"
