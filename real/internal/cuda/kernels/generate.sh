#!/usr/bin/env bash
# Compiles the kernels to PTX with Debian's clang-16: free.cu, parts.cu and plan.cu
# once per element type and once for the pure moves, plan.cu so with all protocols
# and without Simple, check.cu, clock.cu and compute.cu once; two at a time. Byte-identical on every run; `make generate` calls it.
set -euo pipefail
cd "$(dirname "$0")"
for tool in clang-16 zstd; do
  command -v $tool >/dev/null || { echo "generate: $tool is missing: apt-get install $tool" >&2; exit 9; }
done
compile() { # SOURCE NAME FLAGS...
  local source=$1 name=$2 tmp
  shift 2
  tmp=$(mktemp)
  clang-16 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
    -Xclang -target-feature -Xclang +ptx70 -ffp-contract=off -O2 -S "$@" -o "$tmp" "$source.cu" || return
  # Versions of zstd differ in their output; what counts is the PTX. Of 20 MB
  # the text is 1.4 as zstd and was 4 as gzip.
  if ! zstd -dqc "$name.ptx.zst" 2>/dev/null | cmp -s - "$tmp"; then
    zstd -q --ultra -22 --no-progress -c "$tmp" >"$name.ptx.zst"
    echo "$name.ptx.zst is new"
  fi
  rm -f "$tmp"
}
export -f compile
{
  for file in free parts plan; do
    for type in BF16 I8 F16 F32 I32 I64 F64 U8 U32 U64; do echo "$file ${file}_${type,,} -DELEM=$type -DNAME=${type,,}"; done
    echo "$file ${file}_moves -DMOVES"
  done
  for type in BF16 I8 F16 F32 I32 I64 F64 U8 U32 U64; do echo "plan flag_${type,,} -DFLAGGED -DELEM=$type -DNAME=${type,,}"; done
  echo "plan flag_moves -DFLAGGED -DMOVES"
  echo "check check"
  echo "clock clock"
  echo "compute compute"
} | xargs -P 2 -L 1 bash -c 'compile "$@"' compile
