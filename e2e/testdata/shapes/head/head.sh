#!/bin/bash
trap 'echo head >> ended; exit 0' TERM
echo "$SLURMD_NODENAME" > head.up
while :; do sleep 0.05; done
