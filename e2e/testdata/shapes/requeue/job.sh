#!/bin/bash
#SBATCH --job-name=long
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@90
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=long-%j.out

echo "start ${SLURM_RESTART_COUNT:-0}"
srun python3 train.py
echo "end ${SLURM_RESTART_COUNT:-0}"
