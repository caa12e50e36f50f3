#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --gpus-per-task=1
#SBATCH --time=1:00:00
#SBATCH --output=container.out

module load singularity 2>/dev/null
CONTAINER="singularity exec --nv --bind $PWD:/work,/tmp images/torch.sif"
srun $CONTAINER python3 -c 'import os; print("rank", os.environ["SLURM_PROCID"], "of", os.environ["SLURM_NTASKS"], "in", os.environ["SINGULARITY_NAME"], "cards", len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")))'
