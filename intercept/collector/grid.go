package collector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Grid are sizes, those between neighboring ranks first: rank a + 4*b of Grid{4, 8}
// has the places a and b.
type Grid []int

// Size is how many ranks a grid has.
func (g Grid) Size() int {
	n := 1
	for _, d := range g {
		n *= d
	}
	return n
}

// String is the form of --fake-grid.
func (g Grid) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(g)), " ", ","), "[]")
}

// walk calls do with the place of a rank in each size, and with what a step there adds to the rank.
func (g Grid) walk(rank int, do func(digit, place, step int)) {
	step := 1
	for i, d := range g {
		do(i, rank/step%d, step)
		step *= d
	}
}

// Leaders is, by rank, the process that does the same: in each size that of the nearest place
// below that processes have, or of their first one. The error is that processes are no grid:
// some of the places that they have together are no process's.
func (g Grid) Leaders(process []bool) ([]int, error) {
	used := make([][]bool, len(g))
	for i, d := range g {
		used[i] = make([]bool, d)
	}
	for r, real := range process {
		if real {
			g.walk(r, func(i, place, _ int) { used[i][place] = true })
		}
	}
	lead := make([]int, len(process))
	for r := range process {
		g.walk(r, func(i, place, step int) {
			below := place
			for below >= 0 && !used[i][below] {
				below--
			}
			if below < 0 {
				below = slices.Index(used[i], true)
			}
			lead[r] += below * step
		})
		if !process[lead[r]] {
			return nil, fmt.Errorf("the processes are no grid of ranks: rank %d of --fake-grid %v has "+
				"none, and it would do what rank %d does; start one for it", lead[r], g, r)
		}
	}
	return lead, nil
}

// Peer is the peer of rank to where that of rank from, which it does the same as, is peer: as far
// away in each size, around its end.
func (g Grid) Peer(peer, from, to int32) int32 {
	out := 0
	g.walk(int(peer), func(i, place, step int) {
		d := g[i]
		out += (place + int(to)/step%d - int(from)/step%d + d) % d * step
	})
	return int32(out)
}

// Asked is what a rank gives to a split; without In it becomes a member of no part.
type Asked struct {
	In         bool
	Color, Key int64
}

// part is the group of a rank where colors depend on the sizes of a mask, and on no other one.
func (g Grid) part(rank int, mask uint) (first int) {
	g.walk(rank, func(i, place, step int) {
		if mask>>i&1 != 0 {
			first += place * step
		}
	})
	return first
}

// fits reports whether what the processes have asked is a split by the sizes of a mask.
func (g Grid) fits(asked []*Asked, mask uint) bool {
	type seen struct {
		color int64
		in    bool
	}
	colors, parts := map[int]seen{}, map[int64]int{}
	for r, a := range asked {
		if a == nil {
			continue
		}
		p, s := g.part(r, mask), seen{a.Color, a.In}
		if !a.In {
			s.color = 0
		}
		if old, ok := colors[p]; ok && old != s {
			return false
		}
		colors[p] = s
		if !a.In {
			continue
		}
		if old, ok := parts[a.Color]; ok && old != p {
			return false
		}
		parts[a.Color] = p
	}
	return true
}

// masks are the splits that fit, each by the sizes that it depends on.
func (g Grid) masks(asked []*Asked) (out []uint) {
	for mask := range uint(1) << len(g) {
		once := true // sizes of 1 make no difference
		for i, d := range g {
			once = once && (d > 1 || mask>>i&1 == 0)
		}
		if once && g.fits(asked, mask) {
			out = append(out, mask)
		}
	}
	return out
}

// parts are the groups of a mask in the order of their first ranks.
func (g Grid) parts(mask uint) [][]int {
	var out [][]int
	at := map[int]int{}
	for r := range g.Size() {
		p := g.part(r, mask)
		i, ok := at[p]
		if !ok {
			i = len(out)
			at[p] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// say describes the groups of a mask.
func (g Grid) say(mask uint) string {
	parts := g.parts(mask)
	first := parts[0]
	dots := ""
	if len(first) > 4 {
		first, dots = first[:4], " …"
	}
	return fmt.Sprintf("%d of %d ranks (%s%s)", len(parts), len(parts[0]), strings.Trim(fmt.Sprint(first),
		"[]"), dots)
}

// Split is the groups of a split, each in the order of its keys, and the grid of each of them,
// nil where that is not known. Absent ranks, of which asked is nil, do in their groups what their
// leaders do: whether a color depends on a size is known from processes that differ there. Where
// the grid was not declared all ranks ask the same. The error says what is not known.
func (g Grid) Split(asked []*Asked, lead func(rank int) int, declared bool) ([][]int, Grid, error) {
	if !slices.Contains(asked, nil) {
		return byColor(asked), nil, nil
	}
	if !slices.ContainsFunc(asked, func(a *Asked) bool { return a != nil && a.In }) {
		return nil, nil, nil
	}
	masks := g.masks(asked)
	switch {
	case declared && len(masks) == 0:
		return nil, nil, fmt.Errorf("it is split by colors that do not follow from the places of its "+
			"processes in %v; write all sizes of the job's groups, neighbors first (--fake-grid)", g)
	case declared && len(masks) > 1:
		return nil, nil, fmt.Errorf("the colors of its processes fit two splits: %s, and %s; start "+
			"processes at two places or more of each size of %v (--fake-grid)",
			g.say(masks[0]), g.say(masks[1]), g)
	case !declared && (len(masks) == 0 || masks[0] != 0):
		return nil, nil,
			fmt.Errorf("it is split by several colors, and those of ranks that are no process's are not "+
				"known%s", suggest(g.Size(), asked))
	}
	down, ok := g.order(asked, masks[0])
	if !ok {
		return nil, nil, fmt.Errorf("it is split by keys that neither grow nor fall with the rank, and " +
			"those of ranks that are no process's are not known")
	}
	parts := slices.DeleteFunc(g.parts(masks[0]), func(p []int) bool { return !asked[lead(p[0])].In })
	if down {
		for _, p := range parts {
			slices.Reverse(p)
		}
	}
	return parts, g.inside(masks[0]), nil
}

// Group finds the group of the job that ranks are who make a communicator by themselves: at has, by
// its rank, the job's rank of those that have come, -1 of others. Its members are in the order of
// their ranks; it is known once all processes of it, and none of another one, have come. What follow
// are the groups without processes that do what it does, and the grid of each.
func (g Grid) Group(at []int, process []bool) (parts [][]int, inside Grid) {
	lead, err := g.Leaders(process)
	first := slices.IndexFunc(at, func(r int) bool { return r >= 0 })
	if err != nil || first < 0 {
		return nil, nil
	}
	for _, mask := range g.masks(make([]*Asked, len(process))) {
		in := g.inside(mask)
		if in.Size() != len(at) {
			continue
		}
		mine := g.part(at[first], mask)
		list := []int{}
		for r := range process {
			if g.part(r, mask) == mine {
				list = append(list, r)
			}
		}
		other, missing := false, false
		for i, r := range list {
			other = other || at[i] >= 0 && at[i] != r
			missing = missing || at[i] < 0 && process[r]
		}
		if other {
			continue
		}
		if parts != nil || missing {
			return nil, nil // more have to come, or two kinds of groups have these processes
		}
		parts, inside = [][]int{list}, in
		for _, p := range g.parts(mask) {
			if l := lead[p[0]]; g.part(l, mask) == mine && p[0] != list[0] {
				parts = append(parts, p)
			}
		}
	}
	return parts, inside
}

// inside is the grid of a group of a mask.
func (g Grid) inside(mask uint) (out Grid) {
	for i, d := range g {
		if mask>>i&1 == 0 {
			out = append(out, d)
		}
	}
	return out
}

// order reports whether keys fall with the rank within the groups, or, where each has one process,
// over all of them.
func (g Grid) order(asked []*Asked, mask uint) (down, ok bool) {
	up, down, pairs := true, true, 0
	compare := func(a, b *Asked) {
		pairs++
		up, down = up && a.Key <= b.Key, down && a.Key > b.Key
	}
	last := map[int]*Asked{}
	var all []*Asked
	for r, a := range asked {
		if a == nil || !a.In {
			continue
		}
		all = append(all, a)
		p := g.part(r, mask)
		if b := last[p]; b != nil {
			compare(b, a)
		}
		last[p] = a
	}
	if pairs == 0 {
		for i := 1; i < len(all); i++ {
			compare(all[i-1], all[i])
		}
	}
	return !up && down, up || down
}

// byColor are the groups where all ranks are processes.
func byColor(asked []*Asked) [][]int {
	var all []int
	for r, a := range asked {
		if a.In {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(cmp.Compare(asked[a].Color, asked[b].Color), cmp.Compare(asked[a].Key, asked[b].Key))
	})
	var out [][]int
	for i, r := range all {
		if i == 0 || asked[r].Color != asked[all[i-1]].Color {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

// suggest names up to two grids of two sizes that colors fit.
func suggest(n int, asked []*Asked) string {
	process := make([]bool, n)
	for r, a := range asked {
		process[r] = a != nil
	}
	var found []string
	for t := 2; t < n && len(found) < 2; t++ {
		g := Grid{t, n / t}
		if n%t != 0 {
			continue
		}
		if _, err := g.Leaders(process); err != nil {
			continue
		}
		for _, mask := range []uint{1, 2} {
			if g.fits(asked, mask) {
				found = append(found, fmt.Sprintf("groups of --fake-grid %v: %s", g, g.say(mask)))
			}
		}
	}
	if len(found) == 0 {
		return "; write the sizes of the job's groups, neighbors first: --fake-grid 8,4"
	}
	return "; the colors fit " + strings.Join(found[:min(2, len(found))], ", and ") +
		"; write the one that the job has"
}
