package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// errText is a text that cannot be read.
var errText = errors.New("not known")

// splitColour returns what gives a rank its colour, as nccl-tests reads NCCL_TESTS_SPLIT:
// AND, OR, MOD or DIV, or &, |, %, /, and a number (common.cu:1497).
func splitColour(text string) (func(rank int) int, error) {
	for _, o := range []struct {
		word, sign string
		of         func(rank, n int) int
	}{
		{"AND", "&", func(r, n int) int { return r & n }},
		{"OR", "|", func(r, n int) int { return r | n }},
		{"MOD", "%", func(r, n int) int { return r % n }},
		{"DIV", "/", func(r, n int) int { return r / n }},
	} {
		rest, ok := strings.CutPrefix(strings.ToUpper(text), o.word)
		if !ok {
			rest, ok = strings.CutPrefix(text, o.sign)
		}
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.ToLower(strings.TrimSpace(rest)), 0, 31)
		if err != nil || n == 0 && (o.sign == "%" || o.sign == "/") {
			return nil, errText
		}
		return func(rank int) int { return o.of(rank, int(n)) }, nil
	}
	return nil, errText
}

// splitGroups are the communicators of n ranks, by their colours, with the colour of each rank,
// and the index of rank 0's.
func splitGroups(n int, of func(rank int) int) (colours []int, groups []workload.Comm, first int) {
	members := map[int][]int32{}
	for r := range n {
		c := of(r)
		colours = append(colours, c)
		members[c] = append(members[c], int32(r))
	}
	for i, c := range slices.Sorted(maps.Keys(members)) {
		if c == colours[0] {
			first = i
		}
		groups = append(groups, workload.Comm{Name: fmt.Sprintf("group%d", c), Ranks: members[c]})
	}
	return colours, groups, first
}

// rounds is how many groups of operations follow each other where communicators are
// compared: the first begins with all of them, as none later does.
const rounds = 4

// splitProgram has every communicator run its own operation of the calls, n in a group, among
// so many ranks of a machine.
func splitProgram(groups []workload.Comm, calls []workload.Call, n, ranks int) *workload.Program {
	p := &workload.Program{Comms: groups, Calls: calls, Lists: []workload.List{{Name: "idle"}},
		Of: make([]int32, ranks)}
	for i, g := range groups {
		var steps []workload.Step
		for range rounds {
			if n > 1 {
				steps = append(steps, workload.Step{Kind: workload.GroupStart})
			}
			for range n {
				steps = append(steps, workload.Step{Kind: workload.Issue, Call: int32(i)})
			}
			if n > 1 {
				steps = append(steps, workload.Step{Kind: workload.GroupEnd})
			}
		}
		p.Lists = append(p.Lists, workload.List{Name: g.Name, Steps: steps})
		for _, rank := range g.Ranks {
			p.Of[rank] = int32(i + 1)
		}
	}
	return p
}

// splitMean is the mean time of an operation over the ranks of a Program's communicators, of
// when each rank of the machine ended.
func splitMean(groups []workload.Comm, finish []units.Time, n int) units.Time {
	sum, ranks := units.Time(0), 0
	for _, g := range groups {
		for _, rank := range g.Ranks {
			sum += finish[rank]
		}
		ranks += len(g.Ranks)
	}
	return sum / units.Time(ranks*rounds*n)
}
