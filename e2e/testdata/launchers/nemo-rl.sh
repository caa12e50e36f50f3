#!/bin/bash
# NeMo-RL's way to a Ray cluster: a head and workers in containers with names, watched in the background, and attached to from outside.
#SBATCH --nodes=2
#SBATCH --exclusive
#SBATCH --account=lab
#SBATCH --job-name=grpo
#SBATCH --partition=main
#SBATCH --time=1:0:0
#SBATCH --dependency=singleton
#SBATCH --output=ray.out
set -eou pipefail
GPUS_PER_NODE=2
LOG_DIR=$SLURM_SUBMIT_DIR/logs
mkdir -p $LOG_DIR
if sinfo -p $SLURM_JOB_PARTITION -h -o "%G" | grep -q "gpu:"; then
  [ $GPUS_PER_NODE -eq $(sinfo -p $SLURM_JOB_PARTITION -h -o "%G" | grep "gpu:" | cut -d'(' -f1 | awk -F: '{print $NF}') ]
  GRES_ARG="--gres=gpu:${GPUS_PER_NODE}"
fi
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
nodes_array=($nodes)
head_node=${nodes_array[0]}
raw=$(scontrol show node "$head_node" -o)
cpus=${raw#*CPUTot=}
CPUS_PER_WORKER=${cpus%% *}
ulimit -Sn 4096
COMMON_SRUN_ARGS="$GRES_ARG --no-container-mount-home --mpi=pmix --container-mounts=$MOUNTS --container-image=$CONTAINER"
COMMON_SRUN_ARGS+=" --container-workdir=$SLURM_SUBMIT_DIR -p $SLURM_JOB_PARTITION -A lab"
declare -A SRUN_PIDS
srun $COMMON_SRUN_ARGS --container-name=ray-head --nodes=1 --ntasks=1 --cpus-per-task=$CPUS_PER_WORKER -w "$head_node" -o $LOG_DIR/ray-head.log \
  bash -c "echo head > /etc/ray; touch $LOG_DIR/STARTED_RAY_HEAD; echo head on \$(ulimit -n) files, \$SLURM_CPUS_ON_NODE CPUs; until [ -f $LOG_DIR/ENDED ]; do sleep 0.1; done" &
SRUN_PIDS["ray-head"]=$!
_num_workers=$((SLURM_JOB_NUM_NODES - 1))
srun $COMMON_SRUN_ARGS --container-name=ray-worker --exact --nodes=$_num_workers --ntasks=$_num_workers --ntasks-per-node=1 \
  --cpus-per-task=$CPUS_PER_WORKER --kill-on-bad-exit=0 --exclude="$head_node" -o "$LOG_DIR/ray-worker-%01t.log" \
  bash -c "echo worker > /etc/ray; echo worker \$CUDA_VISIBLE_DEVICES; touch $LOG_DIR/STARTED_RAY_WORKER; until [ -f $LOG_DIR/ENDED ]; do sleep 0.1; done" &
SRUN_PIDS["ray-workers"]=$!
while ! test -f "$LOG_DIR/STARTED_RAY_HEAD" || ! test -f "$LOG_DIR/STARTED_RAY_WORKER"; do
  for name in "${!SRUN_PIDS[@]}"; do kill -0 "${SRUN_PIDS[$name]}"; done
  sleep 0.2
done
CONTAINER_CWD=$(scontrol show job $SLURM_JOB_ID | grep -oP 'WorkDir=\K[^ ]+' | head -1)
cat >attach.tmp <<EOF
for which in ray-head:$head_node ray-worker:${nodes_array[1]}; do
  srun --no-container-mount-home $GRES_ARG -A lab -p $SLURM_JOB_PARTITION --overlap --container-name=\${which%:*} --container-workdir=$CONTAINER_CWD --nodes=1 --ntasks=1 -w "\${which#*:}" --jobid $SLURM_JOB_ID bash -c "\$COMMAND"
done
EOF
mv attach.tmp attach.sh
wait "${SRUN_PIDS["ray-head"]}"
