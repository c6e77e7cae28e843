package load

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/workload/kineto"
)

var (
	// rankInName matches a rank in a file name: rank0, rank_3, _r3, and the .3.et of execution traces.
	rankInName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)rank[-_. ]?(\d+)|(?:^|[^a-z0-9])r(\d+)(?:[^a-z0-9]|$)|\.(\d+)\.et$`)
	})
	digits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+`) })
)

// maxRank is the largest rank accepted in a file name.
const maxRank = 1 << 24

// rankOf returns the rank in a file name; -1 if none is marked as a rank. Unmarked numbers may as well be
// steps, dates or process ids: see counted.
func rankOf(name string) int {
	m := rankInName().FindStringSubmatch(path.Base(name))
	for _, g := range m[min(1, len(m)):] {
		if n, err := strconv.Atoi(g); err == nil && n < maxRank {
			return n
		}
	}
	return -1
}

// counted returns the ranks of one run's files whose names differ by a number that counts from 0, as
// trace_0.json and trace_1.json: the names have the same words, and the numbers at one position (or at
// several, with equal values) are 0 … n-1. It returns nil for other names.
func counted(names []string) []int {
	if len(names) < 2 {
		return nil
	}
	numbers := make([][]string, len(names))
	words := ""
	for i, name := range names {
		name = strings.TrimSuffix(name, path.Ext(name))
		numbers[i] = digits().FindAllString(name, -1)
		if w := digits().ReplaceAllString(name, "0"); i == 0 {
			words = w
		} else if w != words {
			return nil
		}
	}
	var out []int
	for place := range numbers[0] {
		ranks := make([]int, len(names))
		for i := range names {
			n, err := strconv.Atoi(numbers[i][place])
			if err != nil || n >= len(names) {
				ranks = nil
				break
			}
			ranks[i] = n
		}
		if !countsFrom0(ranks) {
			continue
		}
		if out != nil && !slices.Equal(out, ranks) {
			return nil // two places count, each in its own way
		}
		out = ranks
	}
	return out
}

// countsFrom0 reports whether numbers are 0 … n-1, n at least 2, some of them perhaps
// more than once.
func countsFrom0(ranks []int) bool {
	sorted := slices.Clone(ranks)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	return len(sorted) > 1 && sorted[0] == 0 && sorted[len(sorted)-1] == len(sorted)-1
}

// count assigns ranks to parts if none of their names contains a rank: the number by which the names differ.
func count[T any](list []ranked[T]) {
	names := make([]string, len(list))
	for i := range list {
		if list[i].rank >= 0 {
			return
		}
		names[i] = list[i].name
	}
	for i, rank := range counted(names) {
		list[i].rank = rank
	}
}

// rankTraces assigns ranks to recordings without distributedInfo, from their file names.
func rankTraces(list []*kineto.Trace) {
	var open []ranked[*kineto.Trace]
	for _, t := range list {
		if t.Rank < 0 {
			open = append(open, ranked[*kineto.Trace]{rankOf(t.File), t.File, t})
		}
	}
	count(open)
	for _, t := range open {
		t.part.Rank = t.rank
	}
}
