#!/bin/bash
#SBATCH --job-name=part
#SBATCH --ntasks=1
#SBATCH --time=1:00:00
#SBATCH --output=part-%j.out

part=${1:-1}
if [ "$part" -lt 3 ]; then
    next=$(sbatch --parsable --dependency=afterok:$SLURM_JOB_ID job.sh $((part + 1)))
    squeue -h -j "$next" -o '%i %T %r' >> waits
fi
echo "part $part begins" >> story
sleep 0.3
echo "part $part ends" >> story
