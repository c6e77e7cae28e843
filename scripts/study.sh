#!/usr/bin/env bash
# study.sh SIMCCL DIR: the sweeps of docs/results/STUDY.md, in DIR: machines and networks are made, each
# specification of scripts/study is run (what is done already is not run again), results are
# merged, pictures drawn and the page's tables printed.
set -euo pipefail
simccl=$(realpath "${1:?study.sh SIMCCL DIR}")
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${2:?study.sh SIMCCL DIR}" && cd "$2"
for gbit in 25 50 100 200 400 800; do
  sed "s/speed=\"400000\"/speed=\"${gbit}000\"/" "$here/testdata/topos/dgx-h100.xml" >h$gbit.xml
done
for gbit in 100 200 400 800; do
  "$simccl" topo fabric rail --hosts 8 --nets 8 --per-leaf 32 --gbit $gbit >rail-$gbit.json
  for over in 1 2 4; do
    "$simccl" topo fabric leaf-spine --hosts 8 --nets 8 --per-leaf 4 --gbit $gbit --oversub $over >leaf$over-$gbit.json
  done
done
for spec in tensor replicas groups algorithms scale; do
  "$simccl" sweep "$here/scripts/study/$spec.yaml" --out $spec || [ $? = 7 ]
  "$simccl" sweep merge $spec -o $spec.parquet
done
draw() { # draw PICTURE FOLDER OPTIONS...
  local to=$1
  shift
  "$simccl" sweep show "$@" -o "$here/docs/img/study-$to.svg"
}
draw scale scale --x ranks --y busbw --by topo --where 'func == "all_reduce" && bytes == 1073741824'
draw experts groups --x 'nic_gbit / nics' --y busbw --by name --where 'func == "alltoall" && bytes > 200000000'
draw replicas replicas --kind heat --x size --by ranks --y busbw --where 'func == "all_reduce" && nic_gbit / nics == 400'
draw alltoall scale --kind heat --x ranks --y 'time_us / 1000' --by topo --where 'func == "alltoall" && bytes == 268435456'
draw algorithms algorithms --x size --y busbw --by NCCL_ALGO --where 'nodes == 1024 && topo == "h400.xml"'
draw front groups --kind front --x usd_h --y time_us --where 'func == "alltoall" && bytes > 200000000'
for spec in tensor replicas groups algorithms scale; do
  "$simccl" sweep status $spec | head -1
done
