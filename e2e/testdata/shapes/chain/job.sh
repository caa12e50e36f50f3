#!/bin/bash
#SBATCH --array=1-10%1
#SBATCH --ntasks=1
#SBATCH --time=0:10:00
#SBATCH --output=chain_%A_%a.log

# Each element goes on where the one before stopped.
mkdir lock || exit 1
last=$(cat checkpoint 2>/dev/null || echo 0)
echo "$SLURM_ARRAY_TASK_ID after $last" >> order
echo $((last + SLURM_ARRAY_TASK_ID)) > checkpoint
rmdir lock
