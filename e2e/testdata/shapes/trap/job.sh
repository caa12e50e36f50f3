#!/bin/bash
#SBATCH -n 1
#SBATCH --time=2:00:00
#SBATCH --signal=B:USR1@90
#SBATCH -o trap.out

save_and_stop() {
    echo "$(date) asking $child to save" >&2
    kill -TERM "$child"
    wait "$child"
    echo "child ended with $?" > ended
    exit 0
}
trap save_and_stop USR1

bash ./work.sh &
child=$!
wait "$child"
