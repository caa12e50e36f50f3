#!/bin/bash
#SBATCH -J ddp -N 1 --ntasks=1
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=4
#SBATCH -t 1:00:00
#SBATCH -o ddp-%j.log
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 2))
torchrun --standalone --nproc_per_node=$SLURM_GPUS_ON_NODE train.py
