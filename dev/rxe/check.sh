#!/usr/bin/env bash
# check.sh: the tests of verbs on a soft-RoCE wire: every operation over 2 to 8
# ranks, the contract of transports over one port and fused ones, faults (packets
# lost, late, doubled, damaged; wrong rkey, QP in error, lost clear-to-send, a cut
# wire, a killed peer), the conformance of executors, perftest's measures.
# Says why where the machine cannot run it; SIMCCL_REQUIRE=rxe makes that a
# failure.
set -euo pipefail
cd "$(dirname "$0")/../.."
missing() {
  echo "rxe: left out: $1"
  case ",${SIMCCL_REQUIRE:-}," in *,rxe,*) exit 1 ;; esac
  exit 0
}
[ "$(uname -m)" = x86_64 ] || missing "the guest is for x86_64, this is $(uname -m)"
command -v apt-get >/dev/null || missing "no apt-get to fetch a kernel and qemu with"
[ "$(id -u)" = 0 ] || missing "needs root, to install qemu and read all of the host's files in the guest"

bin=$(mktemp -d /var/tmp/simccl-rxe.XXXXXX)
trap 'rm -rf "$bin"' EXIT
export CGO_ENABLED=0
for p in real/internal/ibv real/internal/host cmd/simccl; do
  go test -c -o "$bin/${p##*/}.test" "./$p"
done
go build -o "$bin/simccl" ./cmd/simccl
root=$PWD
cat >"$bin/all.sh" <<SH
export SIMCCL_REQUIRE=ib PATH=$bin:\$PATH
rc=0
run() { echo "== \$*"; local from=\$SECONDS; "\$@" || rc=1; echo "-- \$((SECONDS - from)) s"; }
test() { run $bin/\$1.test -test.short -test.timeout 20m ${VERBOSE:+-test.v} -test.run "\$2"; }
simccl() { timeout -s QUIT -k 20 10m env "\$@"; } # what hangs shows its goroutines, and fails
cd $root/real/internal/host
test host 'OverVerbs/[0-9] ranks'
c=ConformsOverVerbs/2_nodes/.*/.*
test host "\$c/LL\$/^1\$|\$c/LL128/^1000\$|\$c/Simple/^(0|1000)\$|ConformsOverVerbs/2_nodes/all_reduce/.*/Simple/20011"
test host 'Disturbed|CutWire|LostClearToSend/verbs'
run simccl $bin/simccl --no-env bench verbs write nccl -s 4096 -n 20
pair() { # server and client, as on two hosts
  simccl $bin/simccl --no-env bench verbs --serve -d rxe1 &
  for i in \$(seq 120); do # the server may be slow to come up
    simccl $bin/simccl --no-env bench verbs 127.0.0.1 read nccl -d rxe0 -s 4096 -b -q 2 -n 20 && wait \$! && return
    sleep 1
  done
  kill \$!
  return 1
}
run pair
# The ports of this machine as one card's: the plan's only NIC is both, fused.
sed 's/"mlx5_0"/"rxe0"/; s/"mlx5_3"/"rxe1"/' $root/testdata/topos/dgx-h100.xml >/run/fused.xml
run simccl NCCL_NET_FORCE_MERGE=rxe0,rxe1 $bin/simccl bench all_reduce --topo /run/fused.xml --nodes 4 --gpus 1 --backend verbs -b 8 -e 64K -f 8192 -n 2 --trace /run/t.json
run $bin/simccl trace validate /run/t.json
cd $root/cmd/simccl && test simccl 'Killed.*/verbs|RealLanes.*/verbs|DetectedNICs'
cd $root/real/internal/ibv && test ibv 'Contract|Fused|Fault|Lost|Perf|Disturbed'
exit \$rc
SH
# Limits end what hangs: a step's within the guest, the guest's here. Emulated, on two busy
# cores, the first step took 180 s.
LIMIT=${LIMIT:-3600} dev/rxe/run.sh bash "$bin/all.sh" || {
  rc=$?
  [ $rc = 125 ] && missing "the guest did not come up"
  exit $rc
}
