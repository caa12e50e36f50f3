# Stands where conda's own would: activate puts an environment's programs in front.
conda() {
    [ "$1" = activate ] || return 2
    export CONDA_DEFAULT_ENV=$2 CONDA_PREFIX=$HOME/miniconda3/envs/$2
    export PATH=$CONDA_PREFIX/bin:$PATH
}
