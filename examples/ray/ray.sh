#!/bin/bash
# A Ray cluster as one gang: all of it starts or none, the end of the driver is the job's, and what fails begins again as a whole.
# gsubmit ray.sh driver.py, where driver.py calls ray.init(address="auto"). Each rank has all cards of a node.
#GANG --role=head:1,ends=gang,gpus-per-rank=2
#GANG --role=worker:2,gpus-per-rank=2
#GANG --max-retries=2
port=6379 cards=2
if [ "$GANG_ROLE" = head ]; then
  ray start --head --node-ip-address="$MASTER_ADDR" --port=$port --num-gpus=$cards
  gbarrier head
  exec python3 "$@"
fi
gbarrier head # not before it listens
exec ray start --address="$MASTER_ADDR:$port" --num-gpus=$cards --block
