#!/bin/bash
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --time=1:00:00
#SBATCH --output=head-%j.out

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=${nodes[0]}
workers=$((SLURM_NNODES - 1))

srun --overlap --nodes=1 --ntasks=1 -w "$head" ./head.sh &
for ((i = 1; i <= workers; i++)); do
    srun --overlap --nodes=1 --ntasks=1 -w "${nodes[$i]}" ./worker.sh "$i" "${1:-}" &
done
srun --overlap --nodes=1 --ntasks=1 -w "$head" ./driver.sh "$workers" &

# The driver ends when all is done; whatever part ends first, nothing of the others may stay.
wait -n
status=$?
kill $(jobs -p) 2>/dev/null
wait
exit "$status"
