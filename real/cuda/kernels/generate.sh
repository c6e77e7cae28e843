#!/usr/bin/env bash
# Compiles the kernels to PTX with Debian's clang-16: free.cu once per element
# type and once for the pure moves, check.cu once. Byte-identical on every run;
# `make generate` calls it.
set -euo pipefail
cd "$(dirname "$0")"
command -v clang-16 >/dev/null || { echo "generate: clang-16 is missing: apt-get install clang-16" >&2; exit 9; }
compile() { # SOURCE NAME FLAGS...
  local source=$1 name=$2
  shift 2
  clang-16 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
    -Xclang -target-feature -Xclang +ptx70 -ffp-contract=off -O2 -S "$@" -o "$tmp" "$source.cu"
  # Versions of gzip differ in their output; what counts is the PTX.
  if ! gzip -dc "$name.ptx.gz" 2>/dev/null | cmp -s - "$tmp"; then
    gzip -9n <"$tmp" >"$name.ptx.gz"
    echo "$name.ptx.gz is new"
  fi
}
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
compile check check
compile free free_moves -DMOVES
compile free free_f32 -DELEM=F32 -DNAME=f32
compile free free_f16 -DELEM=F16 -DNAME=f16
compile free free_bf16 -DELEM=BF16 -DNAME=bf16
compile free free_i8 -DELEM=I8 -DNAME=i8
compile free free_i32 -DELEM=I32 -DNAME=i32
compile free free_i64 -DELEM=I64 -DNAME=i64
