# Helpers of the cases, the same for both systems. Waits are for states and end with the
# case's time limit.

# settle ID...: until none of these jobs is in the queue.
settle() { local j; for j; do while [ -n "$(squeue -h -j "$j" 2>/dev/null)" ]; do sleep .1; done; done; }

# ended ID: until the job's record says how it ended.
ended() { until scontrol show job "$1" 2>/dev/null | grep -qE 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY)'; do sleep .1; done; }

# accounted ID: until sacct has the job's end.
accounted() { until sacct -n -X -j "$1" -o end 2>/dev/null | grep -q T; do sleep .1; done; }

# await FILE...: until each has something in it.
await() { local f; for f; do until [ -s "$f" ]; do sleep .05; done; done; }

# running ID: until it runs.
running() { until [ "$(squeue -h -j "$1" -o %T 2>/dev/null | sort -u)" = RUNNING ]; do sleep .05; done; }

# job ARG...: sbatch, until the job is over; its id is $J.
job() { J=$(sbatch --parsable "$@") && settle "$J"; }

# script NAME: an executable file of standard input.
script() { cat >"$1"; chmod +x "$1"; }

# try COMMAND...: with its exit status behind it.
try() { "$@"; echo "exit $?"; }

# recorded OPTION... -- COMMAND: a job that ends when its start is in Slurm's database, which
# otherwise may hear of the end first; it returns when the end is there, too. Its id is $J.
recorded() {
  local o=()
  while [ "$1" != -- ]; do o+=("$1"); shift; done
  J=$(sbatch --parsable -o /dev/null "${o[@]}" --wrap "until [ -e go ]; do sleep .05; done; $2") || return
  until sacct -n -X -j "$J" -o state%20 2>/dev/null | grep -q RUNNING; do sleep .1; done
  touch go
  settle "$J"
  accounted "$J"
}
