#!/bin/bash
# cloudai's: the same srun before, for the mapping of ranks, for the data of nodes, and for the test.
#SBATCH --job-name=cloudai.nccl
#SBATCH -N 2
#SBATCH --output=stdout.txt
#SBATCH --error=stderr.txt
#SBATCH --partition=main
#SBATCH --distribution=block
#SBATCH --gpus-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:20:00
export SLURM_JOB_MASTER_NODE=$(scontrol show hostname $SLURM_JOB_NODELIST | head -n 1)
srun --export=ALL --mpi=pmix -N2 --container-image=$CONTAINER --container-mounts=$MOUNTS --no-container-mount-home --output=mapping-stdout.txt --error=mapping-stderr.txt bash -c "echo \$(date): \$(hostname):node \${SLURM_NODEID}:rank \${SLURM_PROCID}."
srun --export=ALL --mpi=pmix -N2 --container-image=$CONTAINER --container-mounts=$MOUNTS --no-container-mount-home --ntasks=2 --ntasks-per-node=1 --output=node-%N.toml --error=nodes.err bash -c 'echo "name = $SLURMD_NODENAME"'
PRE_TEST_1=$(grep -q "rank 3" mapping-stdout.txt && echo 1 || echo 0)
if [ $PRE_TEST_1 -eq 1 ]; then
  srun --export=ALL --mpi=pmix -N2 --container-image=$CONTAINER --container-mounts=$MOUNTS --no-container-mount-home bash -c "echo test \$SLURM_NTASKS \$SLURM_LOCALID"
fi
