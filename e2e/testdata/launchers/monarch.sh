#!/bin/bash
#SBATCH --job-name=monarch_lab
#SBATCH --ntasks-per-node=1
#SBATCH --nodes=2
#SBATCH --output=slurm_%j_monarch_lab.out
#SBATCH --error=slurm_%j_monarch_lab.err
#SBATCH --time=00:10:00
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=2
#SBATCH --mem=64M
#SBATCH --exclusive
#SBATCH --partition=main
#SBATCH --account=lab
#SBATCH --qos=normal
srun python3 -c 'import os, socket, time; print("worker", os.environ["SLURM_PROCID"], flush=True); time.sleep(600)'
