#!/usr/bin/env bash
# Compiles the kernels to PTX with Debian's clang-16: free.cu and plan.cu once
# per element type and once for the pure moves, plan.cu so with all protocols and
# without Simple, check.cu and clock.cu once; two at a time. Byte-identical on every run; `make generate` calls it.
set -euo pipefail
cd "$(dirname "$0")"
command -v clang-16 >/dev/null || { echo "generate: clang-16 is missing: apt-get install clang-16" >&2; exit 9; }
compile() { # SOURCE NAME FLAGS...
  local source=$1 name=$2 tmp
  shift 2
  tmp=$(mktemp)
  clang-16 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
    -Xclang -target-feature -Xclang +ptx70 -ffp-contract=off -O2 -S "$@" -o "$tmp" "$source.cu" || return
  # Versions of gzip differ in their output; what counts is the PTX.
  if ! gzip -dc "$name.ptx.gz" 2>/dev/null | cmp -s - "$tmp"; then
    gzip -9n <"$tmp" >"$name.ptx.gz"
    echo "$name.ptx.gz is new"
  fi
  rm -f "$tmp"
}
export -f compile
{
  for file in free plan; do
    for type in BF16 I8 F16 F32 I32 I64; do echo "$file ${file}_${type,,} -DELEM=$type -DNAME=${type,,}"; done
    echo "$file ${file}_moves -DMOVES"
  done
  for type in F64 U8 U32 U64; do echo "plan plan_${type,,} -DELEM=$type -DNAME=${type,,}"; done
  for type in BF16 I8 F16 F32 I32 I64 F64 U8 U32 U64; do echo "plan flag_${type,,} -DFLAGGED -DELEM=$type -DNAME=${type,,}"; done
  echo "plan flag_moves -DFLAGGED -DMOVES"
  echo "check check"
  echo "clock clock"
} | xargs -P 2 -L 1 bash -c 'compile "$@"' compile
