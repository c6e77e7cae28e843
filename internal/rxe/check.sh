#!/usr/bin/env bash
# check.sh: the tests of verbs on a soft-RoCE wire: the contract of transports,
# faults (loss, delay, wrong rkey, QP in error, lost clear-to-send, a killed
# peer), all operations over 2 ranks, all_reduce over 8, perftest's measures.
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
for p in real/ibv real/host cmd/simccl; do
  go test -c -o "$bin/${p##*/}.test" "./$p"
done
go build -o "$bin/simccl" ./cmd/simccl
root=$PWD
cat >"$bin/all.sh" <<SH
export SIMCCL_REQUIRE=ib PATH=$bin:\$PATH
rc=0
run() { echo "== \$*"; local from=\$SECONDS; "\$@" || rc=1; echo "-- \$((SECONDS - from)) s"; }
cd $root/real/host && run $bin/host.test -test.short -test.timeout 90s ${VERBOSE:+-test.v} -test.run 'TestEveryOperationOverVerbs'
cd $root/real/host && run $bin/host.test -test.short -test.timeout 60s ${VERBOSE:+-test.v} -test.run 'TestConformsOverVerbs/2_nodes/.*/.*/.*/1000'
run $bin/simccl --no-env bench verbs -s 65536 -n 100
run $bin/simccl --no-env bench all_reduce --backend verbs --nranks 4 -b 8 -e 64K -f 8192 -n 2 --trace /run/t.json
run $bin/simccl trace validate /run/t.json
cd $root/cmd/simccl && run $bin/simccl.test -test.timeout 40s ${VERBOSE:+-test.v} -test.run 'Killed.*/verbs|RealLanes.*/verbs'
cd $root/real/ibv && run $bin/ibv.test -test.short -test.timeout 80s ${VERBOSE:+-test.v} -test.run 'Contract|Fault|Lost|Perf|Loss'
exit \$rc
SH
LIMIT=${LIMIT:-300} internal/rxe/run.sh bash "$bin/all.sh" || {
  rc=$?
  [ $rc = 125 ] && missing "the guest did not come up"
  exit $rc
}
