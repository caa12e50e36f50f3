#!/usr/bin/env bash
# The main job of gangd on a fresh machine: a small cluster with simulated cards, a real
# gang through submission, failure, drain, restart from its checkpoint and completion.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/bin:$PATH"

work=$(mktemp -d "${TMPDIR:-/tmp}/gang-demo.XXXXXX")
export GANG_DIR="$work/cluster"
cleanup() {
  gangd dev --stop --dir="$GANG_DIR" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap cleanup EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

say "A cluster of 4 nodes with 2 simulated cards of 80G each"
gangd dev --detach --nodes=4 --gpus=2x80G --dir="$GANG_DIR" --set retry_backoff=200ms >/dev/null
show ginfo

CGO_ENABLED=0 go build -o "$work/sum" ./examples/sum
cat >"$work/job.sh" <<'EOF'
#!/bin/bash
#GANG --job-name=sum --size=4 --ranks-per-node=1
#GANG --gpus-per-rank=1 --vram=40G --max-retries=1
#GANG --output=logs/%x-%j.%t.out
# Rank 2 fails once, at step 6 of 10; the restart goes on from the checkpoint.
exec ./sum -steps 10 -pause 100ms -checkpoint sum.ckpt -fail-rank 2 -fail-step 6
EOF
cd "$work"

say "A gang of 4: its ranks meet at MASTER_ADDR:MASTER_PORT and agree on a sum, ten times over"
cat job.sh
show gsubmit job.sh
sleep 0.4
show gqueue
gsubmit --parsable --job-name=too-big --size=8 --gpus-per-rank=1 --vram=40G --ranks-per-node=2 -o /dev/null --wrap 'true' >/dev/null
show gqueue --why @ || true

say "Rank 2 fails: the whole gang is drained, once, and goes on from its checkpoint"
gsubmit --wait --job-name=after -o /dev/null --wrap 'true'
until [ -z "$(gqueue -h)" ]; do sleep 0.1; done
show gctl events 1

say "What the ranks wrote"
show cat logs/sum-1.0.out
show glog 1 --rank=3
show gqueue -t all

for rank in 0 1 2 3; do
  grep -q "rank $rank of 4 .*step 10, all agree on 100" "logs/sum-1.$rank.out"
done
say "Done: 4 ranks on 4 nodes agreed on every sum, before and after the failure."
