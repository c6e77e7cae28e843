#!/bin/sh
# sizes.sh [flags of go build]: machine code of bin/simccl by origin, in MiB: a module,
# or a room of simccl.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 "${GO:-go}" build -trimpath "$@" -o "$dir/simccl" ./cmd/simccl
"${GO:-go}" tool nm -size "$dir/simccl" | awk '
	$3 != "T" && $3 != "t" { next }
	{
		from = "standard library"
		if ($4 ~ /^github.com\/simccl\/simccl\//) {
			from = substr($4, 26)
			sub(/[\/.(].*/, "", from)
			from = "simccl/" from
		} else if ($4 ~ /^[a-z0-9-]+\.[a-z.]*[a-z]\// && $4 !~ /^(type|go):/) {
			split($4, part, "/")
			from = part[1] "/" part[2]
		}
		size[from] += $2
		all += $2
	}
	END {
		for (from in size) if (size[from] >= 52429) printf "%.2f %s\n", size[from] / 1048576, from
		printf "%.2f all\n", all / 1048576
	}' | sort -rn
