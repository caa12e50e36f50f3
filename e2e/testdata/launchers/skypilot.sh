#!/bin/bash
# SkyPilot's cluster on Slurm: a container with a name that stays while the job is there, and commands that enter it.
#SBATCH --job-name=sky-lab
#SBATCH --output=sky-%j.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --gres=gpu:2
#SBATCH --wait-all-nodes=1
#SBATCH --signal=B:TERM@30
srun --nodes=2 --ntasks-per-node=1 --overlap --container-image=$CONTAINER --container-mounts=$MOUNTS --container-name=sky-lab:create \
  --container-remap-root --no-container-mount-home --container-writable bash -c 'echo $(id -u) >/etc/sky; touch ready.$SLURM_PROCID; until [ -e down ]; do sleep 0.1; done' &
until [ -e ready.0 ] && [ -e ready.1 ]; do sleep 0.1; done
srun --unbuffered --quiet --overlap --nodes=2 --ntasks-per-node=1 --gpus-per-node=2 --container-remap-root --container-name=sky-lab:exec \
  bash -c 'echo set up by $(cat /etc/sky), uid $(id -u), $SKYPILOT_NODE_RANK$SLURM_PROCID'
touch down
wait
srun --overlap --nodes=2 --ntasks-per-node=1 --container-name=sky-lab:exec --container-remap-root cat /etc/sky
