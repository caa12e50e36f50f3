#!/bin/bash
# srt-slurm's serving: unlike components, each with its segment, and steps that are named by job, node and component.
#SBATCH --job-name=serve
#SBATCH --output=sweep_%j.log
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --segment=1
#SBATCH --account=lab
#SBATCH --time=00:10:00
#SBATCH --partition=main
#SBATCH hetjob
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --segment=2
#SBATCH --account=lab
#SBATCH --time=00:10:00
#SBATCH --partition=main
for group in 0 1; do
  list=SLURM_JOB_NODELIST_HET_GROUP_$group
  for node in $(scontrol show hostnames ${!list}); do
    srun --jobid $SLURM_JOB_ID --overlap --mpi pmix --oversubscribe --cpu-bind=verbose,none --nodes 1 --ntasks 1 --nodelist $node --het-group=$group \
      --output worker_${group}_$node.out --container-image $CONTAINER --no-container-entrypoint --no-container-mount-home --container-mounts $MOUNTS \
      --container-remap-root --export=ALL,ROLE=$group bash -c 'echo role $ROLE uid $(id -u) cards $CUDA_VISIBLE_DEVICES' &
  done
done
wait
srun --jobid $SLURM_JOB_ID --overlap --nodes 1 --ntasks 1 --het-group=0 bash -c 'echo served'
