#!/usr/bin/env bash
# Measures this machine with 1, 2 and 4 of its GPUs in one go: topology detection
# against NCCL's own dump, NCCL and our algorithms side by side, predictions,
# traces, and the calibration with what it is worth on a later run. Needs
# bin/simccl (make build), a driver and libnccl.so.2, nothing else; what else is
# there (bin/*.test, the profiler plugin, PyTorch) takes part.
#
#   scripts/device.sh OUTDIR [GPUS…]        default: 1 2 4, as many as there are
#
# SIMCCL_LIBNCCL names NCCL where the loader does not find it. QUICK=1 takes
# fewer sizes. PARTS chooses among tests, nccl, own (what runs our own kernels),
# modes, torch, calibrate (default all); OWN=1 is PARTS=own, OWN=0 all but own.
# Every result has its command in its first line. Ends with 0 if nothing failed.
set -uo pipefail
out=${1:?usage: device.sh OUTDIR [GPUS…]}
shift
here=$(cd "$(dirname "$0")/.." && pwd)
sim=${SIMCCL:-$here/bin/simccl}
bin=$(dirname "$sim")
have=$(nvidia-smi -L | wc -l)
[ $# -gt 0 ] || set -- 1 2 4
case ${OWN:-} in
  0) PARTS="tests nccl modes torch calibrate" ;;
  ?*) PARTS=own ;;
esac
: "${PARTS:=tests nccl own modes torch calibrate}"
mkdir -p "$out"
out=$(cd "$out" && pwd)
step=4
[ -n "${QUICK:-}" ] && step=16
bad=0

wants() { [[ " $PARTS " == *" $1 "* ]]; }

# fail TEXT…: what went wrong, on the way to exit status 1.
fail() {
  bad=1
  echo "FAILED: $*"
}

# note FILE COMMAND…: runs, keeps the output with its command and date.
note() {
  local file=$out/$1
  shift
  local limit=(timeout "${LIMIT:-120}")
  [ "$(type -t "$1")" != function ] || limit=()
  { echo "# $(date -u +%FT%TZ) $*"; "${limit[@]}" "$@"; } >"$file" 2>&1
  local rc=$?
  [ $rc = 0 ] || { fail "($rc) $*"; tail -5 "$file"; }
}

# took NAME: seconds since the last call.
mark=$SECONDS
took() {
  echo "$1: $((SECONDS - mark)) s"
  mark=$SECONDS
}

# own N measures our own kernels on N GPUs: the best by measurement, the plan's
# schedule, its trace, and what becomes of three ranks when the fourth is killed.
own() {
  local n=$1 op size algo
  for op in all_reduce all_gather reduce_scatter alltoall broadcast reduce gather scatter sendrecv; do
    note "free_${op}_$n.txt" "$sim" bench "$op" --backend cuda -g "$n" -b 1K -e 1M -f 4 -n 200 -w 5 --launch graph --compare
    note "free_large_${op}_$n.txt" "$sim" bench "$op" --backend cuda -g "$n" -b 4M -e 1G -f 4 -n 40 -w 5 --launch graph --compare
  done
  # NCCL over symmetric windows, and PyTorch's kernels over symmetric memory.
  for op in all_reduce all_gather reduce_scatter broadcast reduce alltoall; do
    note "symmetric_${op}_$n.txt" "$sim" bench "$op" -g "$n" -R 2 -b 1K -e 1G -f 4 -n 20 -w 5 --launch graph
  done
  [ -z "$torch" ] || [ "$n" = 1 ] || note "symmetric_torch_$n.txt" python3 -m torch.distributed.run --nproc-per-node "$n" --master-port 2962$n "$here/scripts/symmetric.py"
  for op in all_reduce all_gather reduce_scatter broadcast reduce alltoall; do
    note "plan_small_${op}_$n.txt" "$sim" bench "$op" --backend cuda --algo plan -g "$n" -b 1K -e 256K -f 4 -n 200 -w 5 --launch graph --compare
    note "plan_${op}_$n.txt" "$sim" bench "$op" --backend cuda --algo plan -g "$n" -b 1M -e 1G -f 4 -n 20 -w 5 --launch graph --compare
  done
  for size in 64K 64M; do
    note "trace_plan_${size}_$n.txt" "$sim" bench all_reduce --backend cuda --algo plan -g "$n" -b $size -e $size --trace "$out/plan_${size}_$n.json.gz"
    note "validate_plan_${size}_$n.txt" "$sim" trace validate "$out/plan_${size}_$n.json.gz"
  done
  if [ -n "$torch" ]; then
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

# nccl N: NCCL on N GPUs beside what is predicted, and detection: NCCL dumps
# what it saw while it ran; only host_hash may differ.
nccl() {
  local n=$1 op
  note "nccl_$n.txt" env NCCL_TOPO_DUMP_FILE="$out/dump_$n.xml" "$sim" bench all_reduce -g "$n" -b 8 -e 1G -f $step -n 20 -w 5 --launch graph --compare
  "$sim" topo detect -g "$n" >"$out/detect_$n.xml" || fail "topo detect -g $n"
  if diff <(sed 's/host_hash="[^"]*"//' "$out/dump_$n.xml") <(sed 's/host_hash="[^"]*"//' "$out/detect_$n.xml") >"$out/detect_$n.diff"; then
    echo "detect $n GPUs: equal to NCCL's dump"
  else
    fail "detect $n GPUs: DIFFERS from NCCL's dump"
  fi
  for op in all_gather reduce_scatter alltoall broadcast reduce sendrecv gather scatter; do
    [ "$n" = 1 ] && [ "$op" = sendrecv ] && continue
    note "nccl_${op}_$n.txt" "$sim" bench "$op" -g "$n" -b 1K -e 1G -f $((step * 4)) -n 20 -w 5 --launch graph --compare
  done
  note "eager_$n.txt" "$sim" bench all_reduce -g "$n" -b 8 -e 1G -f 16 -n 20 -w 5 -I 1 --compare
  [ "$n" -gt 1 ] || return 0
  note "regret_$n.txt" "$sim" bench all_reduce -g "$n" -b 1K -e 256M -f 4 -n 20 -w 5 -G 10 --columns +algo,proto,nch,expect,limit,regret
  traces "$n"
  # One process a GPU, started by torchrun: CUDA IPC between them.
  [ -z "$torch" ] || note "procs_nccl_$n.txt" python3 -m torch.distributed.run --no-python --nproc-per-node "$n" --master-port 2961$n \
    "$sim" bench all_reduce --backend nccl -b 1K -e 256M -f 16 -n 100 -w 5 --launch graph --compare
}

# traces N: NCCL's own events beside the simulated ones. That trace diff finds
# a difference (status 7) is no failure.
traces() {
  local n=$1 size
  [ -e "$bin/libnccl-profiler-simccl.so" ] || return 0
  for size in 64K 64M; do
    note "trace_${size}_$n.txt" "$sim" bench all_reduce -g "$n" -b $size -e $size -f 2 --trace "$out/real_${size}_$n.json"
    note "sim_${size}_$n.txt" "$sim" run all_reduce --topo "$out/detect_$n.xml" -b $size -e $size -f 2 --trace "$out/sim_${size}_$n.json"
    note "validate_${size}_$n.txt" "$sim" trace validate "$out/real_${size}_$n.json"
    "$sim" trace diff "$out/sim_${size}_$n.json" "$out/real_${size}_$n.json" >"$out/diff_${size}_$n.txt" 2>&1
    case $? in 0 | 7) ;; *) fail "trace diff of $size on $n GPUs" ;; esac
  done
}

# modes N: the other ways of nccl-tests to launch and to register buffers.
modes() {
  local n=$1 op i=0 flags
  for flags in "-z 1" "-z 2" "-z 3 -I 1" "-C 1" "-m 4" "-u 3" "-R 1" "-R 2" "-R 2 --launch graph" "-R 2 -x 2"; do
    for op in all_reduce all_gather alltoall; do
      # shellcheck disable=SC2086 # several words
      note "mode${i}_${op}_$n.txt" "$sim" bench "$op" -g "$n" -b 1K -e 64M -f 16 -n 20 -w 5 $flags
    done
    i=$((i + 1))
  done
}

# torchjob N: PyTorch's own NCCL tells our plugin of a training job.
torchjob() {
  local n=$1
  [ -n "$torch" ] && [ -e "$bin/libnccl-profiler-simccl.so" ] || { echo "torch: left out: no PyTorch or no $bin/libnccl-profiler-simccl.so"; return 0; }
  rm -f "$out/ddp_$n".*.json
  note "ddp_$n.txt" env NCCL_PROFILER_PLUGIN="$bin/libnccl-profiler-simccl.so" SIMCCL_PROFILE_FILE="$out/ddp_$n" \
    python3 -m torch.distributed.run --nproc-per-node "$n" --master-port 2962$n "$here/scripts/ddp.py"
  note "ddp_merge_$n.txt" "$sim" trace merge -o "$out/ddp_all_$n.json" "$out/ddp_$n".*.json
  note "ddp_validate_$n.txt" "$sim" trace validate "$out/ddp_all_$n.json"
  note "ddp_stats_$n.txt" "$sim" trace stats "$out/ddp_all_$n.json"
}

# tests are those that were compiled elsewhere (go test -c -o bin/nccl.test
# ./real/internal/nccl, and ./real/internal/device): here their hardware may not be missing. The
# long conformance suite of our kernels belongs to the part own.
tests() {
  local t run='^Test' skip=FreeAgainstNCCL
  for t in nccl device; do
    [ -x "$bin/$t.test" ] || { echo "$t.test: not there"; continue; }
    if [ "$t" = device ]; then
      run=OnGPUs skip='Geometry|Buffered'
      wants own || skip="$skip|Conforms|EveryType"
    fi
    cd "$here/real/internal/$t" || return
    SIMCCL_TEST_LIBNCCL=${SIMCCL_LIBNCCL:-} SIMCCL_REQUIRE=cuda,nccl LIMIT=200 note "test_$t.txt" "$bin/$t.test" -test.v -test.run "$run" -test.skip "$skip"
    cd "$here" || return
    grep -H '^--- SKIP' "$out/test_$t.txt" && fail "$t.test: tests were skipped"
  done
  return 0
}

# calibration with all GPUs: measured, fitted, and held against a later run in
# processes of its own.
calibration() {
  LIMIT=300 note calibrate.txt "$sim" calibrate --data "$out/calibrate_first" --out "$out/machine-class.json"
  note calibrate_later.txt "$sim" calibrate measure "$out/calibrate_later" --sets default
  note calibrate_check.txt "$sim" calibrate check "$out/calibrate_later" --machine-class "$out/machine-class.json" \
    --ops all_reduce,all_gather,reduce_scatter,broadcast,reduce --within 0.05
}

{ date -u +%FT%TZ; nvidia-smi --query-gpu=index,name,driver_version --format=csv,noheader; uname -r; "$sim" version; env | grep ^NCCL_ | sort; } >"$out/machine.txt" 2>&1
if [ -z "${SIMCCL_LIBNCCL:-}" ]; then
  lib=$(python3 -c "import nvidia.nccl,os;print(os.path.join(list(nvidia.nccl.__path__)[0],'lib','libnccl.so.2'))" 2>/dev/null) && export SIMCCL_LIBNCCL=$lib
fi
torch=
if { wants own || wants nccl || wants torch; } && python3 -c 'import torch.distributed.run' 2>/dev/null; then torch=yes; fi
took "start"
if wants calibrate && [ "$have" -gt 1 ]; then
  calibration
  took "calibration"
fi
if wants tests; then
  tests
  took "tests"
fi
for n in "$@"; do
  [ "$n" -le "$have" ] || { echo "$n GPUs: this machine has $have"; continue; }
  if wants nccl; then nccl "$n"; fi
  if [ "$n" -gt 1 ]; then
    if wants own; then own "$n"; fi
    if wants modes; then modes "$n"; fi
    if wants torch; then torchjob "$n"; fi
  fi
  took "$n GPUs"
done
[ $bad = 0 ] && echo "every part ended well"
exit $bad
