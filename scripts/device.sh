#!/usr/bin/env bash
# Measures this machine with 1, 2 and 4 of its GPUs in one go: topology detection
# against NCCL's own dump, NCCL and our algorithms side by side, predictions,
# traces, and the calibration with what it is worth on a later run. Needs
# bin/simccl (make build), a driver and libnccl.so.2, nothing else.
#
#   scripts/device.sh OUTDIR [GPUS…]        default: 1 2 4, as many as there are
#
# SIMCCL_LIBNCCL names NCCL where the loader does not find it. QUICK=1 takes
# fewer sizes, OWN=1 only what runs our own kernels. Every result has its command in its first line.
set -uo pipefail
out=${1:?usage: device.sh OUTDIR [GPUS…]}
shift
here=$(cd "$(dirname "$0")/.." && pwd)
sim=${SIMCCL:-$here/bin/simccl}
have=$(nvidia-smi -L | wc -l)
[ $# -gt 0 ] || set -- 1 2 4
mkdir -p "$out"
if [ -z "${SIMCCL_LIBNCCL:-}" ]; then
  lib=$(python3 -c "import nvidia.nccl,os;print(os.path.join(list(nvidia.nccl.__path__)[0],'lib','libnccl.so.2'))" 2>/dev/null) && export SIMCCL_LIBNCCL=$lib
fi
step=4
[ -n "${QUICK:-}" ] && step=16
bad=0

# note FILE COMMAND…: runs, keeps the output with its command and date.
note() {
  local file=$out/$1
  shift
  local limit=(timeout "${LIMIT:-120}")
  [ "$(type -t "$1")" != function ] || limit=()
  { echo "# $(date -u +%FT%TZ) $*"; "${limit[@]}" "$@"; } >"$file" 2>&1
  local rc=$?
  [ $rc = 0 ] || { bad=1; echo "FAILED ($rc): $*"; tail -5 "$file"; }
}

{ date -u +%FT%TZ; nvidia-smi --query-gpu=index,name,driver_version --format=csv,noheader; uname -r; "$sim" version; env | grep ^NCCL_ | sort; } >"$out/machine.txt" 2>&1

# own N measures our own kernels on N GPUs: the best by measurement, the plan's
# schedule, its trace, and what becomes of three ranks when the fourth is killed.
own() {
  local n=$1 op size
  for op in all_reduce all_gather reduce_scatter alltoall; do
    note "free_${op}_$n.txt" "$sim" bench "$op" --backend cuda -g "$n" -b 1K -e 1M -f 4 -n 200 -w 5 --launch graph --compare
    note "free_large_${op}_$n.txt" "$sim" bench "$op" --backend cuda -g "$n" -b 4M -e 1G -f 4 -n 40 -w 5 --launch graph --compare
  done
  for op in all_reduce all_gather reduce_scatter broadcast reduce alltoall; do
    note "plan_${op}_$n.txt" "$sim" bench "$op" --backend cuda --algo plan -g "$n" -b 1M -e 1G -f 4 -n 20 -w 5 --launch graph --compare
  done
  for size in 64K 64M; do
    note "trace_plan_${size}_$n.txt" "$sim" bench all_reduce --backend cuda --algo plan -g "$n" -b $size -e $size --trace "$out/plan_${size}_$n.json.gz"
    note "validate_plan_${size}_$n.txt" "$sim" trace validate "$out/plan_${size}_$n.json.gz"
  done
  if python3 -c 'import torch.distributed.run' 2>/dev/null; then
    for algo in auto plan; do
      note "procs_${algo}_$n.txt" python3 -m torch.distributed.run --no-python --nproc-per-node "$n" --master-port 2963$n \
        "$sim" bench all_reduce --backend cuda --algo $algo -b 1K -e 256M -f 16 -n 100 -w 5 --launch graph --compare
    done
  fi
  note "killed_$n.txt" killed "$n"
}

# killed N: N processes in an endless plan; the last is killed. The others must
# end by themselves, and the GPUs be idle.
killed() {
  local n=$1 r pids=()
  for ((r = 0; r < n; r++)); do
    "$sim" bench all_reduce --backend cuda --algo plan --rank $r --nranks "$n" --root-address 127.0.0.1:29655 -b 64M -e 64M -n 200000 -c 0 >/dev/null 2>"$out/killed_err.$r" &
    pids+=($!)
  done
  sleep 10
  kill -9 "${pids[n - 1]}"
  local began=$SECONDS rc
  for ((r = 0; r < n - 1; r++)); do
    wait "${pids[r]}"
    rc=$?
    echo "rank $r: exit status $rc after $((SECONDS - began)) s: $(tail -1 "$out/killed_err.$r")"
  done
  rm -f "$out"/killed_err.*
  sleep 1
  nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv,noheader
}

# Tests that were compiled elsewhere (go test -c -o bin/nccl.test ./real/nccl): here nothing may be skipped.
for t in nccl cuda; do
  [ ! -x "$(dirname "$sim")/$t.test" ] || SIMCCL_TEST_LIBNCCL=${SIMCCL_LIBNCCL:-} SIMCCL_REQUIRE=cuda,nccl note "test_$t.txt" "$(dirname "$sim")/$t.test" -test.v
done

for n in "$@"; do
  [ "$n" -le "$have" ] || { echo "$n GPUs: this machine has $have"; continue; }
  began=$SECONDS
  if [ "$n" -gt 1 ]; then own "$n"; fi
  if [ -n "${OWN:-}" ]; then echo "$n GPUs: $((SECONDS - began)) s"; continue; fi
  # Detection: NCCL dumps what it saw while it ran; only host_hash may differ.
  note "nccl_$n.txt" env NCCL_TOPO_DUMP_FILE="$out/dump_$n.xml" "$sim" bench all_reduce -g "$n" -b 8 -e 1G -f $step -n 20 -w 5 --launch graph --compare
  "$sim" topo detect -g "$n" >"$out/detect_$n.xml"
  if diff <(sed 's/host_hash="[^"]*"//' "$out/dump_$n.xml") <(sed 's/host_hash="[^"]*"//' "$out/detect_$n.xml") >"$out/detect_$n.diff"; then
    echo "detect $n GPUs: equal to NCCL's dump"
  else
    echo "detect $n GPUs: DIFFERS from NCCL's dump"; bad=1
  fi
  for op in all_gather reduce_scatter alltoall broadcast reduce sendrecv gather scatter; do
    [ "$n" = 1 ] && [ "$op" = sendrecv ] && continue
    note "nccl_${op}_$n.txt" "$sim" bench "$op" -g "$n" -b 1K -e 1G -f $((step * 4)) -n 20 -w 5 --launch graph --compare
  done
  [ "$n" = 1 ] || note "regret_$n.txt" "$sim" bench all_reduce -g "$n" -b 1K -e 256M -f 4 -n 20 -w 5 -G 10 --columns +algo,proto,nch,expect,limit,regret
  note "eager_$n.txt" "$sim" bench all_reduce -g "$n" -b 8 -e 1G -f 16 -n 20 -w 5 -I 1 --compare
  # Traces: NCCL's own events beside the simulated ones.
  if [ "$n" -gt 1 ] && [ -e "$(dirname "$sim")/libnccl-profiler-simccl.so" ]; then
    for size in 64K 64M; do
      note "trace_${size}_$n.txt" "$sim" bench all_reduce -g "$n" -b $size -e $size -f 2 --trace "$out/real_${size}_$n.json"
      "$sim" run all_reduce --topo "$out/detect_$n.xml" -b $size -e $size -f 2 --trace "$out/sim_${size}_$n.json" >/dev/null
      note "validate_${size}_$n.txt" "$sim" trace validate "$out/real_${size}_$n.json"
      "$sim" trace diff "$out/sim_${size}_$n.json" "$out/real_${size}_$n.json" >"$out/diff_${size}_$n.txt" 2>&1
    done
  fi
  # One process a GPU, started by torchrun: CUDA IPC between them.
  if [ "$n" -gt 1 ] && python3 -c 'import torch.distributed.run' 2>/dev/null; then
    note "procs_nccl_$n.txt" python3 -m torch.distributed.run --no-python --nproc-per-node "$n" --master-port 2961$n \
      "$sim" bench all_reduce --backend nccl -b 1K -e 256M -f 16 -n 100 -w 5 --launch graph --compare
  fi
  echo "$n GPUs: $((SECONDS - began)) s"
done
# Calibration with all GPUs: measured, fitted, and held against a later run in
# processes of its own.
if [ "$have" -gt 1 ] && [ -z "${OWN:-}" ]; then
  began=$SECONDS
  LIMIT=300 note calibrate.txt "$sim" calibrate --data "$out/calibrate_first" --out "$out/machine-class.json"
  note calibrate_later.txt "$sim" calibrate measure "$out/calibrate_later" --sets default
  note calibrate_check.txt "$sim" calibrate check "$out/calibrate_later" --machine-class "$out/machine-class.json" \
    --ops all_reduce,all_gather,reduce_scatter,broadcast,reduce --within 0.05
  echo "calibration: $((SECONDS - began)) s"
fi
exit $bad
