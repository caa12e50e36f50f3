#!/bin/bash
# NVRx's chain of restarts: an array of which two run, the spares behind it, and a job that goes on where the one before left off.
#SBATCH --job-name=nvrx
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --array=0-3%2
#SBATCH --dependency=singleton
#SBATCH --no-requeue
#SBATCH --time=00:25:00
#SBATCH --output=nvrx_%A_%a.out
CONTAINER_ENV="NCCL_MNNVL_ENABLE,NVRX_LOG_DEBUG"
SRUN_ARGS=(
    -l
    --ntasks="${SLURM_JOB_NUM_NODES}"
    --ntasks-per-node=1
    --gpus-per-node=2
    --container-image "$CONTAINER"
    --container-name "nvrx_node${SLURM_NODEID}"
    --no-container-mount-home
    --container-env="$CONTAINER_ENV"
    --container-mounts "$MOUNTS"
)
srun "${SRUN_ARGS[@]}" sh -c "echo element $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT; [ $SLURM_ARRAY_TASK_ID != 0 ] || until [ -e started ]; do sleep 0.1; done; [ $SLURM_ARRAY_TASK_ID != 1 ] || touch started"
if [ "$SLURM_ARRAY_TASK_ID" = 0 ]; then
    scancel --state=PENDING "${SLURM_ARRAY_JOB_ID}" && echo spares released
    scancel --state=PENDING --name="${SLURM_JOB_NAME}" --user="$(id -un)" && echo all released
fi
