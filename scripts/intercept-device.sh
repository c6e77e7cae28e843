#!/usr/bin/env bash
# On a machine with a GPU and PyTorch: jobs of 4 ranks under simccl intercept on one
# GPU, and their calls beside those that NCCL's own log had of a real run on 4 GPUs.
#
#   make shim && bash scripts/intercept-device.sh
#
# With DATA=1 the ranks get what they receive, and compute is timed in turns (--time
# measured): the steps that the program times are printed beside the real ones. With JOBS=1
# all MODES run in one process a rank (scripts/intercept-jobs.py), and only these times
# come out. ARGS are more arguments of train_modes.py. MANY=64 runs that many ranks of data parallel training
# on the one GPU, too (scripts/intercept-ranks.py; about a minute of start). MODES (ddp tp pp ep), TRUTH (a folder with train_modes.py and a folder a mode with
# nccl_coll_rank*.log.gz), OUT (records, logs, outputs), PY (python3) and LIMIT
# (seconds a mode) change what runs, GPUS how many of the machine's GPUs the ranks share (1). A line is printed a rank: how many calls were
# compared, and the first that differs. It ends with 1 where one does.
set -u
cd "$(dirname "$0")/.."
TRUTH=${TRUTH:-shared/workloads/truth}
[ -d "$TRUTH" ] || TRUTH=../shared/workloads/truth
OUT=${OUT:-/tmp/simccl-intercept}
MODES=${MODES-"ddp tp pp ep"}
PY=${PY:-python3}
LIMIT=${LIMIT:-150}
ARGS=${ARGS:-}
HOW="--time record --no-simulation"
[ -n "${DATA:-}" ] && HOW="--time measured --data"
RANKS=4
GPUS=${GPUS:-1}
bad=0
mkdir -p "$OUT"
[ -x bin/simccl ] || { echo "bin/simccl is missing: make shim" >&2; exit 1; }
[ -f "$TRUTH/train_modes.py" ] || { echo "no train_modes.py in $TRUTH" >&2; exit 1; }
export OMP_NUM_THREADS=4 PYTHONUNBUFFERED=1 TORCH_NCCL_DUMP_ON_TIMEOUT=0 NCCL_NVLS_ENABLE=0

# calls LOG.gz: a line a call: name, count, type, reduction, root, ranks.
calls() {
	gzip -dc "$1" | sed -nE 's/.* NCCL INFO ([A-Za-z]+): opCount .* count ([0-9]+) datatype ([0-9]+) op ([0-9]+) root ([0-9]+) .*\[nranks=([0-9]+)\].*/\1 count \2 type \3 op \4 root \5 of \6/p'
}

# ranks NAME COMMAND: the command as all ranks, which share the machine's first GPUS GPUs.
port=29600
ranks() {
	port=$((port + 1))
	timeout -k 10 "$LIMIT" bin/simccl intercept --topo testdata/topos/h200x4-4.xml --multicast off --devices real $HOW --audit --record "$OUT/$1.jsonl" -- \
		"$PY" -m torch.distributed.run --nnodes 1 --nproc-per-node $RANKS --master-addr 127.0.0.1 --master-port $port --no-python \
		sh -c "LOCAL_RANK=\$((RANK % $GPUS)) exec $2" >"$OUT/$1.out" 2>"$OUT/$1.err"
	echo "$1: exit status $?: $(grep 'calls of NCCL' "$OUT/$1.err" || tail -n 1 "$OUT/$1.err" | cut -c1-200)"
	grep 'ran while others' "$OUT/$1.err"
	grep -hE '^(between events|host-bound|partly host-bound|bound by GPUs)' "$OUT/$1.out" | sed "s/^/$1: /"
}

# times MODE: the steps that each rank has timed.
times() {
	"$PY" - "$OUT/$1" "$TRUTH/$1" <<'PYEOF'
import json, os, sys
ours, theirs = sys.argv[1:]
for r in range(4):
    a, b = (os.path.join(d, f"times_rank{r}.json") for d in (ours, theirs))
    if not os.path.exists(a):
        print(f"no {a}")
        continue
    x = json.load(open(a))["variants"]
    y = json.load(open(b))["variants"] if os.path.exists(b) else {}
    for name, v in x.items():
        t = y.get(name, {}).get("median_ms")
        print(f"{os.path.basename(ours)} rank {r} {name}: a step takes {v['median_ms']:.3f} ms" + (f", on 4 GPUs {t:.3f} ms: {100 * (v['median_ms'] / t - 1):+.1f} %" if t else "") + f"; host {v['host_median_ms']:.1f} ms")
PYEOF
}

if [ -n "${JOBS:-}" ]; then
	ranks jobs "$PY scripts/intercept-jobs.py $TRUTH/train_modes.py $OUT ${MODES// /,} $ARGS"
	for m in $MODES; do times "$m"; done
	MODES=
fi
for m in $MODES; do
	ranks "$m" "$PY $TRUTH/train_modes.py --mode $m --out $OUT/$m $ARGS"
	[ -n "${DATA:-}" ] && times "$m"
	for r in $(seq 0 $((RANKS - 1))); do
		ours=$OUT/$m/nccl_coll_rank$r.log.gz theirs=$TRUTH/$m/nccl_coll_rank$r.log.gz
		[ -f "$theirs" ] || continue
		if [ ! -f "$ours" ]; then
			echo "$m rank $r: no log; see $OUT/$m.out" && bad=1
			continue
		fi
		calls "$ours" >"$OUT/$m.$r.ours"
		calls "$theirs" >"$OUT/$m.$r.theirs"
		n=$(wc -l <"$OUT/$m.$r.theirs")
		if [ "$n" -gt 0 ] && cmp -s "$OUT/$m.$r.ours" "$OUT/$m.$r.theirs"; then
			echo "$m rank $r: $n of $n calls equal"
		else
			echo "$m rank $r: ours has $(wc -l <"$OUT/$m.$r.ours") calls, NCCL's log $n; first difference:" && bad=1
			diff "$OUT/$m.$r.theirs" "$OUT/$m.$r.ours" | head -n 3
		fi
	done
done
if [ -n "${MANY:-}" ]; then
	begun=$SECONDS # CLOCK is another clock than measured
	(while sleep 2; do nvidia-smi -i 0 --query-gpu=memory.used --format=csv,noheader,nounits; done) >"$OUT/many.mib" 2>/dev/null &
	looks=$!
	timeout -k 10 "$LIMIT" bin/simccl intercept --topo testdata/topos/dgx-h100.xml --nodes $(((MANY + 7) / 8)) --devices real --time "${CLOCK:-measured}" --data --audit --no-simulation --progress 10s -- \
		bash -c "export WORLD_SIZE=$MANY MASTER_ADDR=127.0.0.1 MASTER_PORT=29777 OMP_NUM_THREADS=1
for r in \$(seq 0 $((MANY - 1))); do RANK=\$r LOCAL_RANK=0 $PY scripts/intercept-ranks.py & all+=(\$!); done
bad=0; for p in \${all[@]}; do wait \$p || bad=1; done; exit \$bad" >"$OUT/many.out" 2>"$OUT/many.err"
	status=$?
	kill $looks
	echo "$MANY ranks: exit status $status after $((SECONDS - begun)) s, at most $(sort -n "$OUT/many.mib" | tail -n 1) MiB of the GPU: $(tail -n 1 "$OUT/many.out" | cut -c1-200)"
	grep 'calls of NCCL' "$OUT/many.err"
	[ $status = 0 ] || bad=1
fi
exit $bad
