#!/usr/bin/env bash
# Compiles the kernels to PTX with Debian's clang-16: free.cu, parts.cu and plan.cu
# once per element type and once for the pure moves, plan.cu so with all protocols
# and without Simple, check.cu, clock.cu and compute.cu once; two at a time. Byte-identical on every run; `make generate` calls it.
#
# kernels.sum has of each file a digest of what it was compiled from and its own. A
# file of which both are as they were is not compiled again, but for an eighth of them,
# drawn by the commit: a wrong line is found within some commits. KERNELS=all compiles
# every one (two minutes of a processor).
set -euo pipefail
cd "$(dirname "$0")"
for tool in clang-16 zstd; do
  command -v $tool >/dev/null || { echo "generate: $tool is missing: apt-get install $tool" >&2; exit 9; }
done
export flags="--cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -Xclang -target-feature -Xclang +ptx70 -ffp-contract=off -O2 -S"
digest() { sha256sum | cut -c1-16; }
export -f digest
sources=$(cat ./*.cu ./*.h | digest)
commit=$(git rev-parse HEAD 2>/dev/null || echo none)
lines=$(mktemp -d)
trap 'rm -rf "$lines"' EXIT
export sources commit lines
known() { # NAME FROM: whether the file is as it was when it was compiled from that, and is not drawn
  [ "${KERNELS:-}" != all ] && [ -e "$1.ptx.zst" ] && grep -qsxF "$1 $2 $(digest <"$1.ptx.zst")" kernels.sum &&
    [[ $(echo "$commit $1" | digest) != [01]* ]]
}
compile() { # SOURCE NAME FLAGS...
  local source=$1 name=$2 tmp from
  from=$(echo "$sources $flags $*" | digest)
  shift 2
  if ! known "$name" "$from"; then
    tmp=$(mktemp)
    # shellcheck disable=SC2086 # flags are words
    clang-16 -x cuda $flags "$@" -o "$tmp" "$source.cu" || return
    # Versions of zstd differ in their output; what counts is the PTX. Of 20 MB
    # the text is 1.4 as zstd and was 4 as gzip.
    if ! zstd -dqc "$name.ptx.zst" 2>/dev/null | cmp -s - "$tmp"; then
      zstd -q --ultra -22 --no-progress -c "$tmp" >"$name.ptx.zst"
      echo "$name.ptx.zst is new"
    fi
    rm -f "$tmp"
  fi
  echo "$name $from $(digest <"$name.ptx.zst")" >"$lines/$name"
}
export -f compile known
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
(cd "$lines" && LC_ALL=C && export LC_ALL && cat ./*) >kernels.sum
