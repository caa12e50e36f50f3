#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --array=0-15%4
#SBATCH --cpus-per-task=1
#SBATCH --mem=100M
#SBATCH --time=10
#SBATCH --output=logs/%A_%a.out

rates=(1 2 3 4)
seeds=(10 20 30 40)
rate=${rates[$((SLURM_ARRAY_TASK_ID / 4))]}
seed=${seeds[$((SLURM_ARRAY_TASK_ID % 4))]}

mkdir -p running results
touch "running/$SLURM_ARRAY_TASK_ID"
ls running | wc -l >> at-once
sleep 0.2
echo "$((rate * seed))" > "results/$SLURM_ARRAY_TASK_ID"
rm "running/$SLURM_ARRAY_TASK_ID"
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX, array $SLURM_ARRAY_JOB_ID"
