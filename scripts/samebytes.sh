#!/bin/sh
# samebytes.sh OLD NEW [REGEXP] runs the command lines of
# testdata/commands.txt with two builds of simccl and compares, byte by byte,
# what each prints, what it writes to files and its exit status. With a REGEXP
# only the lines that match it run, and those marked as setup. Example:
#
#   go build -o /tmp/new ./cmd/simccl
#   scripts/samebytes.sh /tmp/old /tmp/new 'run .*--fault'
#
# SAMEBYTES_OLD=DIR keeps the outputs of OLD in DIR, or takes them from there
# where an earlier call has left them.
set -eu
if [ $# -lt 2 ]; then
	sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
	exit 6
fi
root=$(cd "$(dirname "$0")/.." && pwd)
# A binary that does not run gives the same error as another that does not: the
# comparison would find no difference.
for binary in "$1" "$2"; do
	if ! [ -f "$binary" ] || ! [ -x "$binary" ]; then
		echo "samebytes.sh: $binary is no executable file; build it with go build -o $binary ./cmd/simccl" >&2
		exit 6
	fi
	if ! "$binary" --help >/dev/null 2>&1; then
		echo "samebytes.sh: $binary --help fails; build it for this machine with go build -o $binary ./cmd/simccl" >&2
		exit 6
	fi
done
old=$(realpath "$1") new=$(realpath "$2") pattern=${3:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
kept=${SAMEBYTES_OLD:-$work/old}

# run_all BINARY DIR runs every command line in DIR; line N leaves N.out, N.err
# and N.status there.
run_all() {
	mkdir -p "$2/bin" "$2/files"
	ln -sf "$1" "$2/bin/simccl"
	n=0
	while IFS= read -r line; do
		n=$((n + 1))
		case $line in '' | '#'*) continue ;; esac
		case $line in
		'setup '*) line=${line#setup } ;;
		*) printf '%s\n' "$line" | grep -Eq -- "$pattern" || continue ;;
		esac
		[ -e "$2/$n.status" ] && continue
		status=0
		(cd "$2/files" && TOPOS=$root/testdata/topos PATH=$2/bin:$PATH sh -c "$line") >"$2/$n.out" 2>"$2/$n.err" </dev/null || status=$?
		echo "$status" >"$2/$n.status"
	done <"$root/testdata/commands.txt"
}

run_all "$old" "$kept"
run_all "$new" "$work/new"
differ=0 same=0
for status in "$work/new"/*.status; do
	n=$(basename "$status" .status)
	if cmp -s "$kept/$n.out" "$work/new/$n.out" && cmp -s "$kept/$n.err" "$work/new/$n.err" && cmp -s "$kept/$n.status" "$status"; then
		same=$((same + 1))
		continue
	fi
	differ=$((differ + 1))
	echo "line $n: $(sed -n "${n}p" "$root/testdata/commands.txt")"
	for part in status err out; do
		diff "$kept/$n.$part" "$work/new/$n.$part" | sed -n '1,6p'
	done
done
for file in "$work/new/files"/*; do
	[ -d "$file" ] && continue # shards of a sweep: what it merges is compared
	name=$(basename "$file")
	if ! cmp -s "$kept/files/$name" "$file"; then
		differ=$((differ + 1))
		echo "file $name:"
		cmp "$kept/files/$name" "$file" || true
	fi
done
echo "$same command lines equal, $differ differences"
[ "$differ" -eq 0 ]
