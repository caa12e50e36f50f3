#!/bin/bash
# torchrun on each of two nodes, as one gang: a process that fails ends all of it, and all of it begins again from its checkpoints.
# gsubmit torchrun.sh train.py --steps 1000. Each rank has all cards of a node.
#GANG --role=trainer:2,gpus-per-rank=2
#GANG --max-retries=2 --signal=USR1@120
exec torchrun --nnodes="$GANG_ROLE_SIZE" --node-rank="$GANG_ROLE_RANK" --nproc-per-node=2 \
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" "$@"
