package search_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// brute packs rings into a host by trying all of them: the dumb second
// implementation for hosts of few GPUs, inside one host. Loads are thousandths
// of GB/s.
type brute struct {
	sys   *topo.System
	rings [][]int // load per link of every cyclic order of the GPUs
	left  []int
	best  int
	limit int // channels that suffice
	tries int
}

// milli returns thousandths, and whether v has no more decimals.
func milli(v float32) (int, bool) {
	k := int(math.Round(float64(v) * 1000))
	return k, float32(k)/1000 == v
}

// load adds what a route costs at a speed; false where it is worse than kind.
// Intel root complexes cost a fifth more on PCI; GPUs charge no reverse links
// among each other, POWER's NVLink to the CPU does.
func (b *brute) load(cost []int, from, to topo.NodeID, speed int, kind topo.PathKind) bool {
	p := b.sys.Path(from, to)
	if p.Kind > kind || p.Kind == topo.PathDIS {
		return false
	}
	intel := false
	for _, l := range p.Links {
		end := b.sys.Nodes[b.sys.Links[l].To]
		intel = intel || p.Kind == topo.PathPHB && end.Kind == topo.CPU &&
			end.CPU.Arch == topo.ArchX86 && end.CPU.Vendor == topo.VendorIntel
	}
	for _, l := range p.Links {
		c := speed
		if intel && b.sys.Links[l].Kind == topo.LinkPCI {
			c = speed * 6 / 5
		}
		cost[l] += c
	}
	return true
}

// orders calls f with every order of the GPUs that begins with the first.
func orders(gpus []topo.NodeID, f func([]topo.NodeID)) {
	var rec func(i int)
	rec = func(i int) {
		if i == len(gpus) {
			f(gpus)
			return
		}
		for j := i; j < len(gpus); j++ {
			gpus[i], gpus[j] = gpus[j], gpus[i]
			rec(i + 1)
			gpus[i], gpus[j] = gpus[j], gpus[i]
		}
	}
	rec(1)
}

// most returns how many rings of a speed fit together, at most limit; false
// where that takes too long to say.
func most(sys *topo.System, speed int, kind topo.PathKind, limit int) (int, bool) {
	b := brute{sys: sys, limit: limit, left: make([]int, len(sys.Links))}
	for i, l := range sys.Links {
		b.left[i], _ = milli(float32(l.BW))
	}
	gpus := append([]topo.NodeID{}, sys.Of(topo.GPU)...)
	orders(gpus, func(o []topo.NodeID) {
		cost := make([]int, len(sys.Links))
		for i := range o {
			if !b.load(cost, o[i], o[(i+1)%len(o)], speed, kind) {
				return
			}
		}
		b.rings = append(b.rings, cost)
	})
	b.pack(0, 0)
	return b.best, b.tries < 200000
}

// pack adds rings from the i-th on, each as often as it fits.
func (b *brute) pack(i, n int) {
	b.best = max(b.best, n)
	if b.tries++; b.best >= b.limit || b.tries > 200000 {
		return
	}
	for ; i < len(b.rings); i++ {
		fits := true
		for l, c := range b.rings[i] {
			b.left[l] -= c
			fits = fits && b.left[l] >= 0
		}
		if fits {
			b.pack(i, n+1)
		}
		for l, c := range b.rings[i] {
			b.left[l] += c
		}
	}
}

// TestBruteForceFindsNoMoreRings: at every attempt of a ring search inside a
// host, no packing of rings has fewer channels than the search found; and where
// the search ended by itself, free to use other orders in every channel, none
// has more. NVSwitch machines are left out: there NCCL tries neighbours only.
func TestBruteForceFindsNoMoreRings(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		sys := drawSystem(t, 6)
		n := len(sys.Of(topo.GPU))
		if n < 2 || sys.Inter || len(sys.Of(topo.NVS)) > 0 || sys.Nodes[sys.Of(topo.CPU)[0]].CPU.Arch ==
			topo.ArchPower {
			return
		}
		for _, l := range sys.Links {
			if _, whole := milli(float32(l.BW)); !whole {
				return
			}
		}
		g, err := search.Compute(sys, search.Want{ID: search.RingID, Pattern: search.RingPattern,
			MinChannels: 1, MaxChannels: 32}, search.Params{Rules: rules.Default()})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range g.Attempts {
			if a.Repeated {
				continue
			}
			speed, _ := milli(float32(a.BWIntra))
			want, known := most(sys, speed, a.TypeIntra, 32)
			if !known {
				continue
			}
			compared++
			if a.Channels > want {
				t.Fatalf("%+v: only %d rings fit", a, want)
			}
			if (a.Stop == "exhausted" || a.Stop == "none") && !a.SameChannels && a.Channels != want {
				t.Fatalf("%+v: %d rings fit", a, want)
			}
		}
	})
	t.Logf("attempts compared: %d", compared)
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
