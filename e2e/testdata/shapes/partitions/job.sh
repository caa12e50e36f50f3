#!/bin/bash
#SBATCH --partition=short,gpu,long
#SBATCH --exclude=n1,n[3-4]
#SBATCH --nodes=1 --ntasks=2
#SBATCH --time=1:00:00
#SBATCH --output=%x.%j.out --job-name=anywhere

echo "$SLURM_JOB_PARTITION $SLURM_JOB_NODELIST $SLURM_NTASKS" > where
srun -l hostname > /dev/null
squeue -h -j "$SLURM_JOB_ID" -o "%P %N %T" >> where
