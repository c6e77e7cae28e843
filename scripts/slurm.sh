#!/usr/bin/env bash
# slurm.sh SIMCCL: a sweep of 400 points as an array of 8 under a real Slurm: a private
# instance of Debian's slurm-wlm on ports of its own, without munge. Three tasks do not
# come to their end: they are held after some points. Of one simccl is killed (SIGKILL), of
# one all processes, and one meets Slurm's time limit. They are queued again, and the merged results must be those of one
# process, byte for byte. Says why where it cannot run; SIMCCL_REQUIRE=slurm makes that
# a failure.
set -euo pipefail
simccl=$(realpath "${1:?slurm.sh SIMCCL}")
missing() {
  echo "slurm: left out: $1"
  case ",${SIMCCL_REQUIRE:-}," in *,slurm,*) exit 1 ;; esac
  exit 0
}
PATH=$PATH:/usr/sbin
for c in slurmctld slurmd sbatch scontrol squeue; do
  command -v $c >/dev/null || missing "$c is not installed (apt-get install slurm-wlm)"
done
[ "$(id -u)" = 0 ] || missing "needs root: slurmd starts tasks as their owner"
dir=$(mktemp -d /var/tmp/simccl-slurm.XXXXXX)
end() {
  status=$?
  trap - EXIT
  for daemon in slurmd slurmctld; do
    pid=$(cat "$dir/$daemon.pid" 2>/dev/null) || continue
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do # they write their state before they end
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
  done
  [ $status = 0 ] || { tail -n 20 "$dir"/*.log "$dir"/slurm-*.out || true; } >&2
  rm -rf "$dir"
  exit $status
}
trap end EXIT
fail() {
  echo "slurm: $*" >&2
  exit 1
}
host=$(hostname -s)
port=$((20000 + $$ % 20000))
plugins=$(dirname "$(find /usr/lib -name auth_none.so -path '*slurm*' | head -1)")
[ "$plugins" != . ] || missing "its plugins are not installed (apt-get install slurm-wlm-basic-plugins)"
mkdir "$dir/state" "$dir/spool"
# Credentials must be short-lived: a task that is queued again waits that long. A time limit
# is looked at every 30 s. The node says it has more processors than it has, so
# that all tasks run at once.
cat >"$dir/slurm.conf" <<CONF
ClusterName=simccl
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
PluginDir=$plugins
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2
KillWait=2
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
SlurmdParameters=config_overrides
ReturnToService=2
MaxArraySize=1001
NodeName=$host NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$dir/slurm.conf
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF"

cd "$dir"
mkdir bin held && export SIMCCL=$simccl PATH=$dir/bin:$PATH
# A task of simccl lasts less than a second: no script can be sure to meet it half done. So
# tasks 2, 3 and 5 run, the first time, with a --max-time that leaves points over, and then
# stand still as a process that goes on would.
cat >bin/simccl <<'HELD'
#!/usr/bin/env bash
task=${SLURM_ARRAY_TASK_ID:-}
case "$task ${SLURM_RESTART_COUNT:-0}" in
"2 0" | "3 0" | "5 0")
  for ms in 1 2 4 8 16 32 64 128; do # until there is a point
    "$SIMCCL" "$@" --jobs 1 --max-time ${ms}ms && break
    ! cat results/part-"$task"of8-*.jsonl | grep -q . || break
  done
  echo $$ >held/$task.new && mv held/$task.new held/$task
  while :; do kill -STOP $$; done
  ;;
esac
exec "$SIMCCL" "$@"
HELD
chmod +x bin/simccl
cat >sweep.yaml <<SPEC
base: {workload: {op: all_reduce}}
grid:
  topo: [dgx-h100, dgx-a100]
  nodes: [1, 2, 3, 4, 5]
  size: [8, 1K, 16K, 64K, 256K, 1M, 2M, 4M]
  op: [all_reduce, all_gather, reduce_scatter, broadcast, alltoall]
SPEC
simccl sweep emit slurm sweep.yaml --shards 8 --out results >job.sbatch
until sinfo -h -o %t 2>/dev/null | grep -q idle; do
  [ $SECONDS -lt 300 ] || fail "the node does not come up"
  sleep 0.2
done
job=$(sbatch --parsable --time=10 job.sbatch)

# stopped TASK: the process of a task that is held after some of its points.
stopped() {
  until [ -e held/$1 ]; do
    [ $SECONDS -lt 600 ] || fail "task $1 has no results"
    sleep 0.1
  done
  echo "task $1: process $(cat held/$1) held after $(cat results/part-"$1"of8-*.jsonl | wc -l) points" >&2
  cat held/$1
}
late=$(stopped 5)
one=$(stopped 2)
all=$(stopped 3)
# Slurm takes whole minutes when a task is submitted, and seconds for one that runs.
scontrol update JobId="${job}_5" EndTime="$(date -d '+1 second' +%Y-%m-%dT%H:%M:%S)"
kill -KILL "$one" # its script sees that and queues the task again
script=$(ps -o ppid= -p "$all")
kill -KILL $script "$all"

again() { # again TASK STATE: queue a task again that has ended so
  while :; do
    state=$(scontrol show job "${job}_$1" -o | grep -o 'JobState=[A-Z]*')
    [ "$state" != "JobState=$2" ] || break
    [ $SECONDS -lt 900 ] || fail "task $1 is $state, not $2"
    sleep 0.2
  done
  scontrol requeue "${job}_$1"
}
again 3 FAILED
simccl sweep sweep.yaml --out one --jobs 2 # beside the array
again 5 TIMEOUT
for _ in $(seq 600); do # it ends after SIGTERM, or by SIGKILL after KillWait
  kill -0 "$late" 2>/dev/null || break
  sleep 0.1
done
! kill -0 "$late" 2>/dev/null || fail "the time limit left a process"
while squeue -h -j "$job" 2>/dev/null | grep -q .; do
  [ $SECONDS -lt 1200 ] || fail "tasks are left: $(squeue -h -j "$job")"
  scontrol update JobId="$job" StartTime=now 2>/dev/null || true
  sleep 0.5
done
for task in 2 3 5; do
  scontrol show job "${job}_$task" -o | grep -q 'Restarts=[1-9]' || fail "task $task was not queued again"
done
simccl sweep status results
simccl sweep merge results -o all.jsonl
simccl sweep merge one -o one.jsonl
cmp all.jsonl one.jsonl || fail "the array's results are not those of one process"
[ "$(wc -l <all.jsonl)" = 400 ] && [ "$(cut -d'"' -f4 all.jsonl | sort -u | wc -l)" = 400 ] || fail "400 points are wanted, once each"
# No point ran twice either, but those that a kill took.
[ "$(cat results/part-*.jsonl | grep -c '"key":"[0-9a-f]*".*}$')" = 400 ] || fail "a point was written twice"
[ "$(ls results/part-*.jsonl | wc -l)" -ge 11 ] || fail "8 tasks and 3 that came again make 11 files"
echo "slurm: an array of 8, three of them ended and queued again, equals one process: 400 points, ${SECONDS} s"
