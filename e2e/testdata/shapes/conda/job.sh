#!/bin/bash
#SBATCH --job-name=train            # what squeue shows
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --gres=gpu:1
#SBATCH --mem=1G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x_%j.out
#SBATCH --error=logs/%x_%j.err

source ~/miniconda3/etc/profile.d/conda.sh
conda activate torch

set -euo pipefail
echo "Job $SLURM_JOB_ID ($SLURM_JOB_NAME) on $SLURM_JOB_NODELIST, $SLURM_CPUS_PER_TASK CPUs"
nvidia-smi 2> /dev/null || true
python -u train.py --epochs 3 --out "runs/$SLURM_JOB_ID"
