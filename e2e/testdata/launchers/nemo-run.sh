#!/bin/bash
# The lines that NeMo-Run's executor writes for a training on two nodes; it fails once, and asks for itself again.
#SBATCH --account=lab
#SBATCH --exclusive
#SBATCH --gpus-per-node=2
#SBATCH --job-name=lab-nemo.train
#SBATCH --mem=0
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --open-mode=append
#SBATCH --output=sbatch_%x_%j.out
#SBATCH --partition=main
#SBATCH --time=00:10:00
set -evx
export PYTHONUNBUFFERED=1
export SLURM_UNBUFFEREDIO=1
export TORCHX_MAX_RETRIES=1
set +e
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
nodes_array=($nodes)
head_node=${nodes_array[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
srun --ntasks=1 --ntasks-per-node=1 --output measure.out --wait=60 --kill-on-bad-exit=1 --overlap hostname
srun --output log_%x_%j_${SLURM_RESTART_COUNT:-0}.out --container-image $CONTAINER --container-mounts $MOUNTS --container-workdir /nemo_run/code \
  --container-env HEAD --wait=60 --kill-on-bad-exit=1 --mpi=pmix --no-container-mount-home \
  sh -c "pwd -P; echo rank \$SLURM_PROCID of \$SLURM_NTASKS, cards \$CUDA_VISIBLE_DEVICES, head ${head_node_ip:+known}; [ ${SLURM_RESTART_COUNT:-0} -gt 0 ]"
exitcode=$?
set -e
echo "job exited with code $exitcode"
if [ $exitcode -ne 0 ]; then
    if [ "$TORCHX_MAX_RETRIES" -gt "${SLURM_RESTART_COUNT:-0}" ]; then
        scontrol requeue "$SLURM_JOB_ID"
    fi
    exit $exitcode
fi
