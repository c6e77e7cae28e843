package collector_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/intercept/collector"
	"pgregory.net/rapid"
)

// job is a grid, the places of its processes, and what all its ranks would ask.
type job struct {
	g       collector.Grid
	process []bool
	all     []*collector.Asked
}

// place is the place of a rank in a size.
func place(g collector.Grid, rank, digit int) int {
	for _, d := range g[:digit] {
		rank /= d
	}
	return rank % g[digit]
}

func jobs(t *rapid.T) job {
	j := job{g: rapid.SliceOfN(rapid.IntRange(2, 5), 1, 4).Draw(t, "grid")}
	n := j.g.Size()
	mask := rapid.IntRange(0, 1<<len(j.g)-1).Draw(t, "sizes that the color depends on")
	firstOnly := rapid.Bool().Draw(t, "a color in one group alone")
	sign := rapid.SampledFrom([]int64{1, -1, 0}).Draw(t, "key")
	hash := rapid.Int64Range(1, 1000).Draw(t, "color")
	used := make([][]bool, len(j.g))
	for i, d := range j.g {
		used[i] = make([]bool, d)
		for _, p := range rapid.SliceOfNDistinct(rapid.IntRange(0, d-1), 2, d, rapid.ID[int]).Draw(t,
			"places") {
			used[i][p] = true
		}
	}
	for r := range n {
		process, color, step := true, int64(0), int64(1)
		for i, d := range j.g {
			p := place(j.g, r, i)
			process = process && used[i][p]
			if mask>>i&1 != 0 {
				color += step * int64(p)
			}
			step *= int64(d)
		}
		j.process = append(j.process, process)
		j.all = append(j.all, &collector.Asked{In: true, Color: color*hash%100003 + 5, Key: sign * int64(r)})
	}
	if first := j.all[slices.Index(j.process, true)].Color; firstOnly {
		// As in PyTorch: the groups of which no rank is in that of the first process ask nothing. The absent
		// groups that do what it does ask as well.
		lead, _ := j.g.Leaders(j.process)
		for r, a := range j.all {
			a.In = j.all[lead[r]].Color == first
		}
	}
	return j
}

// TestSplit: what processes at two places and more of each size ask, is what all ranks ask.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := jobs(t)
		lead, err := j.g.Leaders(j.process)
		if err != nil {
			t.Fatal(err)
		}
		asked := slices.Clone(j.all)
		for r := range asked {
			if !j.process[r] {
				asked[r] = nil
			}
		}
		got, inside, err := j.g.Split(asked, func(r int) int { return lead[r] }, true)
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := j.g.Split(j.all, nil, true)
		for _, list := range [][][]int{got, want} {
			slices.SortFunc(list, func(a, b []int) int { return slices.Min(a) - slices.Min(b) })
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v and not %v", got, want)
		}
		if inside != nil && inside.Size() != len(got[0]) {
			t.Fatalf("groups of %d are a grid %v", len(got[0]), inside)
		}
	})
}

// TestJob: 32 processes are 8,192 ranks: tensor parallelism of 8, data parallelism of 128, 8 stages.
func TestJob(t *testing.T) {
	g := collector.Grid{8, 128, 8}
	process := make([]bool, g.Size())
	for r := range process {
		process[r] = r%8 < 2 && r/8%128 < 2
	}
	lead, err := g.Leaders(process)
	if err != nil || lead[7+8*127+1024*5] != 1+8+1024*5 {
		t.Fatal(err, lead[7+8*127+1024*5])
	}
	for _, c := range []struct {
		what        string
		color       func(r int) int
		count, size int
		inside      collector.Grid
	}{
		{"tensor", func(r int) int { return r / 8 }, 1024, 8, collector.Grid{8}},
		{"data", func(r int) int { return r%8 + r/1024*8 }, 64, 128, collector.Grid{128}},
		{"pipeline", func(r int) int { return r % 1024 }, 1024, 8, collector.Grid{8}},
		{"model", func(r int) int { return r / 8 % 128 }, 128, 64, collector.Grid{8, 8}},
		{"all", func(r int) int { return 0 }, 1, 8192, g},
	} {
		asked := make([]*collector.Asked, len(process))
		for r := range asked {
			if process[r] {
				asked[r] = &collector.Asked{In: true, Color: int64(c.color(r)), Key: int64(r)}
			}
		}
		got, inside, err := g.Split(asked, func(r int) int { return lead[r] }, true)
		if err != nil || len(got) != c.count || len(got[0]) != c.size || !slices.Equal(inside, c.inside) {
			t.Errorf("%s: %d groups, %v: %v", c.what, len(got), inside, err)
			continue
		}
		for _, list := range got {
			for _, r := range list {
				if c.color(r) != c.color(list[0]) {
					t.Fatalf("%s: ranks %d and %d in one group", c.what, r, list[0])
				}
			}
		}
	}
}

// TestPeer: a peer is as far away in each size, around its end; a stage's is on its own column.
func TestPeer(t *testing.T) {
	for _, c := range []struct {
		g                    collector.Grid
		peer, from, to, want int32
	}{
		{collector.Grid{16}, 1, 0, 15, 0},
		{collector.Grid{8, 2}, 8, 0, 3, 11},    // the next stage
		{collector.Grid{8, 2}, 1, 9, 12, 4},    // the one before
		{collector.Grid{4, 4}, 4, 0, 13, 1},    // around
		{collector.Grid{4, 4}, 13, 13, 6, 6},   // itself
		{collector.Grid{2, 3, 2}, 7, 0, 5, 10}, // of two sizes
	} {
		if got := c.g.Peer(c.peer, c.from, c.to); got != c.want {
			t.Errorf("%v: peer %d of %d is %d of %d, and not %d", c.g, c.peer, c.from, got, c.to, c.want)
		}
	}
}

// TestGroup: a group is known when all its processes have come, and only where no other one is possible.
func TestGroup(t *testing.T) {
	for _, c := range []struct {
		processes, at []int
		want          string
	}{
		{[]int{0, 1, 4, 5}, []int{0, 1, -1, -1}, "[[0 1 2 3]] [4]"},
		{[]int{0, 1, 4, 5}, []int{4, 5, -1, -1}, "[[4 5 6 7] [8 9 10 11] [12 13 14 15]] [4]"},
		{[]int{0, 1, 4, 5}, []int{1, 5, -1, -1}, "[[1 5 9 13] [2 6 10 14] [3 7 11 15]] [4]"},
		{[]int{0, 1, 4, 5}, []int{0, -1, -1, -1}, "[] []"},
		{[]int{0, 1, 4, 5}, []int{1, 0, -1, -1}, "[] []"}, // in another order
		{[]int{0, 1, 4, 5}, []int{0, 5, -1, -1}, "[] []"},
		{[]int{0, 1, 2, 3}, []int{0, -1, -1, -1}, "[] []"}, // of four neighbors, or alone in its column
		{[]int{0, 1, 2, 3}, []int{-1, -1, 2, -1}, "[] []"},
		{[]int{0, 1, 2, 3}, []int{0, 1, 2, 3}, "[[0 1 2 3] [4 5 6 7] [8 9 10 11] [12 13 14 15]] [4]"},
	} {
		process := make([]bool, 16)
		for _, r := range c.processes {
			process[r] = true
		}
		parts, inside := collector.Grid{4, 4}.Group(c.at, process)
		if got := fmt.Sprintf("%v [%v]", parts, inside); got != c.want {
			t.Errorf("%v of %v are %s and not %s", c.at, c.processes, got, c.want)
		}
	}
}

// TestRefused: what is not known is said.
func TestRefused(t *testing.T) {
	ask := func(n int, colors map[int]int64, key func(r int) int64) []*collector.Asked {
		out := make([]*collector.Asked, n)
		for r, color := range colors { //lint:sorted each by itself
			out[r] = &collector.Asked{In: true, Color: color, Key: key(r)}
		}
		return out
	}
	none := func(int) int64 { return 0 }
	for _, c := range []struct {
		g        collector.Grid
		asked    []*collector.Asked
		declared bool
		want     string
	}{
		{collector.Grid{8}, ask(8, map[int]int64{0: 1, 4: 2}, none), false, "several colors"},
		{collector.Grid{4, 4}, ask(16, map[int]int64{0: 1, 1: 1, 2: 1, 3: 1}, none), true, "two splits"},
		{collector.Grid{4, 4}, ask(16, map[int]int64{0: 1, 1: 2, 4: 3, 5: 1}, none), true, "do not follow"},
		{collector.Grid{4, 4}, ask(16, map[int]int64{0: 1, 2: 1, 4: 1, 6: 1}, func(r int) int64 {
			return int64(r % 4)
		}), true, "neither grow nor fall"},
	} {
		if _, _, err := c.g.Split(c.asked, func(r int) int { return r }, c.declared); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v does not say %q", c.g, err, c.want)
		}
	}
	if _, err := (collector.Grid{2, 2}).Leaders([]bool{true, false, false, true}); err == nil {
		t.Error("processes on a diagonal are no grid")
	}
}
