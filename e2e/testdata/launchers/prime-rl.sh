#!/bin/bash
# prime-rl's: programs of every node come by standard input; one that fails ends the others.
#SBATCH --job-name=rl
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:2
#SBATCH --partition=main
#SBATCH --exclusive
#SBATCH --output=job_%j.log
#SBATCH --error=job_%j.log
srun --ntasks-per-node=1 bash -s <<'SYNC_SH'
echo "sync $SLURM_PROCID"
SYNC_SH
export HOSTNAMES=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
srun bash -s <<'CLEANUP_SH'
pkill -f "[n]one-of-these" || true
echo "clean $SLURM_NODEID of $SLURM_NNODES"
CLEANUP_SH
srun --kill-on-bad-exit=1 bash -s <<'LAUNCH_SH'
if [ "$SLURM_PROCID" = 1 ]; then sleep 0.5; exit 7; fi
trap 'echo trainer stopped; exit 143' TERM
sleep 60 & wait
LAUNCH_SH
echo "launch $?"
