#!/bin/bash
#SBATCH --ntasks=2 --nodes=2
#SBATCH --comment="two words, 'quoted'"
#SBATCH --output="quotes-%j.out"

greeting="it's \"$(basename "$SLURM_SUBMIT_DIR")\""
run_one() {
    local lr=$1 name=$2
    echo "task $SLURM_PROCID: lr=$lr name='$name' $greeting" > "result $SLURM_PROCID"
}
export -f run_one
export greeting

srun bash -c 'run_one "1e-$SLURM_PROCID" "a \"b  c\" \$HOME"; [ $? = 0 ]'
srun --ntasks=1 --nodes=1 bash -c "for f in 'result '*; do cat \"\$f\"; done; echo \"sum: \$((SLURM_JOB_ID - $SLURM_JOB_ID))\""
