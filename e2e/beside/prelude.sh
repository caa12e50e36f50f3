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

# waiting ARRAY N REASON...: until so many of its elements wait for each reason.
waiting() { local a=$1; shift; until [ "$(echo $(squeue -h -r -j "$a" -o %r | sort | uniq -c))" = "$*" ]; do sleep .2; done; }

# grouped ARRAY: how an array of elements 7, 8, 20, 40, 51 and 999 is shown, as A.
grouped() {
  local e
  squeue -h -j "$1" -o '%i %j %l %t' | sed "s/^${1}_/A_/" | sort
  squeue -h -r -j "$1" -o %i | wc -l
  squeue -h -j "${1}_8,${1}_20,${1}_51,${1}_999" -o '%i %j %l %r' | sed "s/^${1}_/A_/" | sort
  scontrol -o show job "$1" | sed -E 's/.*ArrayTaskId=(\S+) .*JobName=(\S+) .* Reason=(\S+) .* TimeLimit=(\S+) .*/\1 \2 \3 \4/' | sort
  for e in 7 40 51 999; do scontrol show job "${1}_$e" | grep -oE '(JobName|JobState|Reason|TimeLimit|ArrayTaskId|ArrayTaskThrottle)=\S*' | paste -sd' '; done
}

# reserve NAME ARG...: a reservation of an hour for whoever runs the case, and how it went.
reserve() { scontrol create reservation ReservationName="$1" Users="$(id -un)" Duration=60 "${@:2}"; echo "= $?"; }

# starts OPTION...: whether a job with these starts. One that has not after some plans waits, and is taken away.
starts() {
  local j i
  j=$(sbatch --parsable -o /dev/null "$@" --wrap true) || return
  for i in $(seq 60); do
    if [ -z "$(squeue -h -j "$j" -t PENDING 2>/dev/null)" ]; then settle "$j"; echo "starts $*"; return; fi
    sleep .2
  done
  echo "waits $*"
  scancel "$j"; settle "$j"
}

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

# hearers OPTION...: a job whose batch script, a child of that, and two tasks of a step write down
# what they are sent, in heard.script, heard.child, heard.0 and heard.1, until there is a file go.
# Its id is $J.
hearers() {
  hearer
  cat >hear.sh <<'EOF'
#!/bin/bash
for s in HUP INT USR1 USR2 TERM; do trap "echo SIG$s >>heard.script" $s; done
python3 hear.py child &
srun -Q -n2 sh -c 'exec python3 hear.py $SLURM_PROCID' &
until [ -e go ]; do sleep .05 & wait $!; done
wait
EOF
  J=$(sbatch --parsable -n2 -o /dev/null "$@" hear.sh) || return
  await up.{child,0,1}
}

# hearer: the program that does so, hear.py NAME [SIGNAL, which it dies of].
hearer() {
  cat >hear.py <<'EOF'
import os, signal, sys, time
log = os.open("heard." + sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
def hear(n, frame):
    os.write(log, (signal.Signals(n).name + "\n").encode())
    if signal.Signals(n).name in sys.argv: os.kill(os.getpid(), signal.SIGKILL)
for s in ("HUP", "INT", "USR1", "USR2", "TERM"):
    signal.signal(getattr(signal, "SIG" + s), hear)
open("up." + sys.argv[1], "w").write("up\n")
while not os.path.exists("go"): time.sleep(0.02)
EOF
}

# listening KIND OPTION...: a job of srun alone, of salloc or of sbatch in a directory of its own ($S), whose one task
# writes down in heard.0 what it is sent, until there is a file go; the script of sbatch does so in heard.script. Its id is
# $J, and $P the process of srun or salloc.
listening() {
  local kind=$1; shift
  S=$kind$(ls -d "$kind"* 2>/dev/null | wc -l)
  mkdir "$S" && cd "$S" || return
  hearer
  printf '%s\n' '#!/bin/bash' 'for s in HUP INT USR1 USR2 TERM; do trap "echo SIG$s >>heard.script" $s; done' \
    'srun -Q python3 hear.py 0 &' 'until [ -e go ]; do sleep .05 & wait $!; done' 'wait' >hear.sh
  case $kind in
    srun) srun -Q -n1 -J "$S" "$@" python3 hear.py 0 >out 2>&1 & ;;
    salloc) salloc -Q -n1 -J "$S" "$@" srun -Q python3 hear.py 0 >out 2>&1 & ;;
    sbatch) sbatch -Q -n1 -J "$S" -o out "$@" hear.sh ;;
  esac
  P=$!
  await up.0
  J=$(squeue -h -n "$S" -o %A)
  cd ..
}

# over WHAT: of the job that listens now, what each heard, and how srun or salloc and the job ended.
over() {
  local e=
  touch "$S/go"
  case $S in srun* | salloc*) wait "$P"; e="exit $?, " ;; esac
  ended "$J"
  echo "$1: $e$(cd "$S" && told | paste -sd' '), $(scontrol show job "$J" | grep -oE '(JobState|ExitCode)=[A-Z0-9:_]+' | paste -sd' ')"
}

# signalled KIND: what comes of each signal to the script of a job of this kind, to all of it, and to both.
signalled() {
  local o s
  for o in --batch --full '--batch --full'; do
    for s in HUP INT USR1 USR2 TERM; do
      listening "$1"
      try scancel $o -s $s "$J"
      sleep .3
      over "$o $s"
      cat "$S/out"
    done
  done
}

# heard SIGNAL NAME...: until each has heard of it.
heard() { local s=$1 n; shift; for n; do until grep -q "SIG$s" "heard.$n" 2>/dev/null; do sleep .05; done; done; }

# told: what each has heard.
told() { local n; for n in script child 0 1; do [ -e "heard.$n" ] && echo "$n: $(paste -sd' ' "heard.$n")"; done; }

# savers HOW OPTION...: a job with two tasks on each of two nodes, in a directory of its own ($S), which
# write down what they are sent and save for two seconds. Its script does HOW when it gets TERM, and when
# there is a file go; "-": it takes no signal. Its id is $J; it runs once.
savers() {
  local how=$1; shift
  S=s$(ls -d s[0-9]* 2>/dev/null | wc -l)
  mkdir "$S"
  cat >"$S/task.py" <<'EOF'
import os, signal, time
log = open("log." + os.environ["SLURM_PROCID"], "a", 1)
told = []
def hear(sig, frame):
    told.append(sig)
    log.write("signal %d\n" % sig)
signal.signal(signal.SIGTERM, hear)
log.write("up\n")
while not told: time.sleep(0.02)
for i in range(4): time.sleep(0.5)
log.write("saved\n")
EOF
  {
    echo '#!/bin/bash'
    echo '[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 0'
    [ "$how" = - ] || echo "trap 'trap - TERM; $how' TERM"
    echo 'srun -Q /usr/bin/python3 task.py &'
    echo 'until [ -e go ]; do sleep .1 & wait $!; done'
    [ "$how" = - ] || echo "$how"
  } >"$S/job.sh"
  J=$(cd "$S" && sbatch --parsable -N2 --ntasks-per-node=2 --requeue -o out.txt "$@" job.sh) || return
  await "$S"/log.{0,1,2,3}
}

# tale NAME DIR ID: what each task was told and kept, and how the job ended.
tale() {
  settle "$3"
  ended "$3"
  echo "== $1"
  scontrol show job "$3" | grep -oE '(JobState|ExitCode)=[A-Z0-9:]+'
  local t; for t in 0 1 2 3; do
    echo "heard by $t: $(grep -o '[0-9]*$' "$2/log.$t" | paste -sd' ')"
    echo "kept by $t: $(grep -v signal "$2/log.$t" | paste -sd' ')"
  done
}

# ends COMMAND OPTION...: savers whose scripts end in each way, at the same time. COMMAND is run with each $J and $S when
# all are up.
ends() {
  local command=$1 how i names=('exit 0' 'exit 3' 'kill -TERM $$' 'kill -KILL $$') jobs=() dirs=(); shift
  for how in "${names[@]}"; do savers "$how" "$@"; jobs+=("$J"); dirs+=("$S"); done
  for i in 0 1 2 3; do J=${jobs[i]} S=${dirs[i]}; eval "$command"; done
  for i in 0 1 2 3; do tale "${names[i]}" "${dirs[i]}" "${jobs[i]}"; done
}
