package preset

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/simccl/simccl/topo"
)

// exchanges is RCCL's recursion over the orders of a list, whole and without leaving any
// (graph/rome_models.cc:2369).
func exchanges(order []int, n int, ok func() bool) bool {
	if n == len(order)-1 {
		return ok()
	}
	for i := n; i < len(order); i++ {
		order[n], order[i] = order[i], order[n]
		if exchanges(order, n+1, ok) {
			return true
		}
		order[n], order[i] = order[i], order[n]
	}
	return false
}

// TestPermuteFindsRCCLsFirstOrder: leaving orders early finds the order that RCCL finds first.
func TestPermuteFindsRCCLsFirstOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	found := 0
	for range 300 {
		n := 2 + rng.Intn(5)
		allowed := make([][]bool, n) // which place may be first of a pair
		for i := range allowed {
			allowed[i] = make([]bool, n)
			for j := range allowed[i] {
				allowed[i][j] = rng.Intn(4) > 0
			}
		}
		a, b := turned(n), turned(n)
		pair := func(o []int, i int) bool { return allowed[o[i-1]][o[i]] }
		is := permute(a, func(i int) bool { return i == 0 || pair(a, i) })
		was := exchanges(b, 0, func() bool {
			for i := 1; i < n; i++ {
				if !pair(b, i) {
					return false
				}
			}
			return true
		})
		if is != was || is && !slices.Equal(a, b) {
			t.Fatalf("%v: %v %v, want %v %v", allowed, is, a, was, b)
		}
		if is {
			found++
		}
	}
	if found < 50 {
		t.Errorf("only %d orders found", found)
	}
}

// TestOrdersAreLexicographicByGroup: groups are permuted each by itself, the first slowest.
func TestOrdersAreLexicographicByGroup(t *testing.T) {
	got := ""
	g := []int{0, 1, 2, 3}
	(&machine{}).orders(g, 0, 2, func(int) bool { return true }, func(o []int) bool {
		got += fmt.Sprint(o)
		return false
	})
	if want := "[0 1 2 3][0 1 3 2][1 0 2 3][1 0 3 2]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if fmt.Sprint(g) != "[0 1 2 3]" {
		t.Errorf("the list is left as %v", g)
	}
}

// TestModelsAreWhole: each model has as many entries as GPUs and NICs, and rings and trees of all of its
// GPUs.
func TestModelsAreWhole(t *testing.T) {
	if n := len(models()); n != 47 {
		t.Fatalf("%d models", n)
	}
	for _, m := range models() {
		n := len(m.gpus)
		if len(m.xgmi) != n*n || len(m.near) != n*len(m.nics) || len(m.pattern) != 2*m.cpus {
			t.Errorf("model %s: %d links, %d paths, pattern %s", m.name, len(m.xgmi), len(m.near), m.pattern)
		}
		for _, rings := range [][]string{m.rings, m.tail1, m.tail2, m.rails} {
			for _, text := range rings {
				d := drawing{m: &machine{model: *m}}
				p := d.parse(text, make([]int, 2*n))
				if !d.fits(&p) {
					t.Errorf("model %s: ring %q", m.name, text)
				}
			}
		}
	}
}

// TestSeveralNICsOfAGPUGoInOrder: where each GPU has more than one NIC, each NIC of the model takes the first
// of the machine that is left, of its NUMA node where that counts and as near to each GPU, where a path by
// another GPU is as near as any (graph/rome_models.cc:2751).
func TestSeveralNICsOfAGPUGoInOrder(t *testing.T) {
	gpus := make([]device, 2)
	const near, far, pxn = topo.PathPIX, topo.PathSYS, topo.PathPXN
	ref := &model{gpus: gpus, nics: []device{{numa: 0}, {numa: 0}, {numa: 1}, {numa: 1}},
		near: []topo.PathKind{near, far, near, far, far, near, far, near}}
	for _, c := range []struct {
		name string
		numa []int64
		near []topo.PathKind
		by   bool // NUMA nodes
		want []int
	}{
		{"the same order", []int64{0, 0, 1, 1}, ref.near, true, []int{0, 1, 2, 3}},
		{"the other end first", []int64{1, 0, 1, 0}, []topo.PathKind{far, near, near, far, far, near, near,
			far}, true,
			[]int{1, 3, 0, 2}},
		{"by another GPU", []int64{0, 0, 1, 1}, []topo.PathKind{near, pxn, pxn, far, far, near, pxn, pxn},
			true,
			[]int{0, 1, 2, 3}},
		{"a near one too many", []int64{0, 0, 1, 1}, []topo.PathKind{near, far, near, far, near, far, far,
			near}, true,
			nil},
		{"far from the first", []int64{0, 0, 1, 1}, []topo.PathKind{far, far, near, far, far, near, far,
			near}, true,
			nil},
		{"nodes do not agree", []int64{1, 1, 0, 0}, ref.near, true, nil},
		{"nodes do not count", []int64{1, 1, 0, 0}, ref.near, false, []int{0, 1, 2, 3}},
	} {
		m := &machine{model: model{gpus: gpus, near: c.near}}
		for _, n := range c.numa {
			m.nics = append(m.nics, device{numa: n})
		}
		if got := m.takeNICs(ref, c.by); !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
