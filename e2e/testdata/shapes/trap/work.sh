trap 'echo usr1 >> wrong' USR1
trap 'echo "step $n" > checkpoint; exit 7' TERM
n=0
while :; do
    n=$((n + 1))
    sleep 0.05
done
