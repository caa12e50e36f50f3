#!/bin/bash
until [ -e head.up ]; do sleep 0.05; done
trap "echo worker $1 >> ended; exit 0" TERM
echo "$1 $SLURMD_NODENAME" > "worker-$1.up"
if [ "$1$2" = 2dies ]; then
    until [ -e worker-1.up ]; do sleep 0.05; done
    kill -KILL $$
fi
while :; do
    [ -e "task-$1" ] && echo $(($(cat "task-$1") ** 2)) > "result-$1.new" && mv "result-$1.new" "result-$1"
    sleep 0.05
done
