#!/usr/bin/env bash
# Compiles free.cu to PTX with Debian's clang-16, one file per element type and
# one for the pure moves. Byte-identical on every run; `make generate` calls it.
set -euo pipefail
cd "$(dirname "$0")"
command -v clang-16 >/dev/null || { echo "generate: clang-16 is missing: apt-get install clang-16" >&2; exit 9; }
compile() { # NAME FLAGS...
  local name=$1
  shift
  clang-16 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
    -Xclang -target-feature -Xclang +ptx70 -ffp-contract=off -O2 -S "$@" -o "$tmp" free.cu
  # Versions of gzip differ in their output; what counts is the PTX.
  if ! gzip -dc "free_$name.ptx.gz" 2>/dev/null | cmp -s - "$tmp"; then
    gzip -9n <"$tmp" >"free_$name.ptx.gz"
    echo "free_$name.ptx.gz is new"
  fi
}
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
compile moves -DMOVES
compile f32 -DELEM=F32 -DNAME=f32
compile f16 -DELEM=F16 -DNAME=f16
compile bf16 -DELEM=BF16 -DNAME=bf16
compile i8 -DELEM=I8 -DNAME=i8
compile i32 -DELEM=I32 -DNAME=i32
compile i64 -DELEM=I64 -DNAME=i64
