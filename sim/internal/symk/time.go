package symk

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Machine is what a kernel runs on.
type Machine struct {
	Comm    *connect.Layout
	Systems []*topo.System
	Class   *gpu.Class
	Set     int64 // bytes that a rank uses again and again; 0: those of the kernel
	Place   route.Place
	// Slow is by how much the slowest rank's threads take longer, 0 for 1: all ranks wait
	// for it at the kernel's last barrier, or for its flags.
	Slow float64
}

// Time is how long a kernel or a collective takes, and what it leaves on the links.
type Time struct {
	Gap   float64 // us that no bytes move: launch, prologue, barriers
	Busy  float64 // us from the first byte to the last
	Links []exec.LinkLoad
}

// Kernel times the kernel of a launch. Errors: a *route.Error where the topology has no path between two
// GPUs.
func (m *Machine) Kernel(l *sym.Launch) (Time, error) {
	s := shape{l.Kernel, m.Comm.NRanks, int64(l.Element)}
	miss := m.miss(l)
	t := Time{Gap: m.Class.Sym.Gap}
	if l.Kernel.LL() {
		t.Gap = m.Class.Sym.GapLL
	}
	for b := range l.Channels {
		us, first := 0.0, true
		for i, p := range l.Parts(b) {
			if i > 0 {
				us += m.Class.Sym.Work
			}
			task := l.Works[p.Work].Task
			if l.Kernel.LL() {
				us += m.push(&s, task, p, miss)
				continue
			}
			for _, ps := range s.passes(task, p) {
				us += float64(ps.times) * m.Class.SymLoopTime(&ps.SymLoop, miss)
				// loaded while the barrier is waited for
				if first && ps.Own && ps.Packs > 1 && !l.Kernel.Multicast() {
					us -= m.Class.Sym.Local
				}
				first = false
			}
		}
		t.Busy = max(t.Busy, us)
	}
	load, err := m.traffic(l)
	if err != nil {
		return Time{}, err
	}
	t.Links = load.loads()
	t.Busy = m.Class.SymTime(t.Busy*max(1, m.Slow), load.fullest())
	return t, nil
}

// miss is the share of the data that is not in L2, by a rank's buffers.
func (m *Machine) miss(l *sym.Launch) float64 {
	n, set := int64(m.Comm.NRanks), int64(0)
	for i := range l.Works {
		t := &l.Works[i].Task
		bytes := t.Count * int64(t.Type.Size())
		switch t.Func {
		case coll.AllReduce:
			set += 2 * bytes
		default:
			set += n * bytes
		}
	}
	return m.Class.Miss(max(m.Set, set))
}

// push is the time of the passes of an LL kernel's block, of up to 512 packs of 8
// bytes each (all_reduce.cuh:355, reduce_scatter.cuh:337, all_gather.cuh:244).
func (m *Machine) push(s *shape, t sym.Task, p sym.Part, miss float64) (us float64) {
	peers := int64(s.ranks)
	if s.kernel.Multicast() {
		peers = 1
	}
	for packs := (p.Elements*int64(t.Type.Size()) + 7) / 8; packs > 0; packs -= sym.Threads {
		us += m.Class.SymPushTime(min(packs, sym.Threads)*peers, miss)
	}
	return us
}

// traffic is the bytes on the links of a machine.
type traffic struct {
	wire.Layout
	table *route.Table
	class *gpu.Class
	// crowds: many pairs of GPUs meet on a link to a switch.
	crowds bool
	// crowdLoad and crowdStore are the class's, or what takes their place.
	crowdLoad, crowdStore float64
	links                 []load // by link
}

// load is what a link carries: bytes that were loaded and stored, that the switch
// reduces and copies, or that go between nodes, of so many pairs of GPUs.
type load struct {
	loads, stores, shared, wire float64
	pairs                       int
}

func (m *Machine) newTraffic() *traffic {
	w := &traffic{class: m.Class, crowdLoad: m.Class.Sym.CrowdLoad,
		crowdStore: m.Class.Sym.CrowdStore, crowds: len(m.Systems[0].Of(topo.NVS)) > 0}
	w.table = route.New(m.Comm, m.Systems, m.Class, &w.Layout)
	w.table.Place = m.Place
	return w
}

// each calls do for the links of table.Uses.
func (w *traffic) each(do func(l *load, times float64)) {
	for _, u := range w.table.Uses {
		for int(u.Link) >= len(w.links) {
			w.links = append(w.links, load{})
		}
		do(&w.links[u.Link], float64(u.Count))
	}
}

// between puts bytes on the way from a GPU to another's memory: those that the other
// loads, and those that the first stores.
func (w *traffic) between(src, dst int32, loads, stores float64) error {
	node, from := w.table.GPU(src)
	_, to := w.table.GPU(dst)
	w.table.Uses = w.table.Uses[:0]
	if err := w.table.Walk(node, from, to); err != nil {
		return err
	}
	w.each(func(l *load, times float64) {
		l.loads, l.stores, l.pairs = l.loads+loads*times, l.stores+stores*times, l.pairs+1
	})
	return nil
}

// throughSwitch puts bytes on the link between a GPU and its NVLink switch.
func (w *traffic) throughSwitch(rank int32, out bool, bytes float64) error {
	w.table.Uses = w.table.Uses[:0]
	if err := w.table.ToSwitch(rank, out); err != nil {
		return err
	}
	w.each(func(l *load, times float64) { l.shared += bytes * times })
	return nil
}

// traffic is what a kernel moves: each pair of ranks has the same, or with multicast
// each rank with the switch.
func (m *Machine) traffic(l *sym.Launch) (*traffic, error) {
	w := m.newTraffic()
	a := m.amounts(l)
	n := int32(m.Comm.NRanks)
	for src := range n {
		if l.Kernel.Multicast() {
			if err := w.throughSwitch(src, true, a.out); err != nil {
				return nil, err
			}
			if err := w.throughSwitch(src, false, a.in); err != nil {
				return nil, err
			}
			continue
		}
		for dst := range n {
			if dst == src {
				continue
			}
			if err := w.between(src, dst, a.loads, a.stores); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// amounts are bytes that a rank loads from another and stores to it, and with
// multicast those that it gives to the switch and takes from it.
type amounts struct{ loads, stores, out, in float64 }

// amounts of all works. LL doubles them by flags.
func (m *Machine) amounts(l *sym.Launch) (a amounts) {
	n := float64(m.Comm.NRanks)
	for i := range l.Works {
		t := &l.Works[i].Task
		bytes := float64(t.Count * int64(t.Type.Size()))
		switch {
		case l.Kernel.LL():
			a.stores, a.out, a.in = a.stores+2*bytes, a.out+2*bytes, a.in+2*n*bytes
		case t.Func == coll.AllReduce: // loads a part, stores a part
			a.loads, a.stores, a.out, a.in = a.loads+bytes/n, a.stores+bytes/n, a.out+bytes+bytes/n,
				a.in+bytes+bytes/n
		case t.Func == coll.AllGather:
			a.stores, a.out, a.in = a.stores+bytes, a.out+bytes, a.in+n*bytes
		default:
			a.loads, a.out, a.in = a.loads+bytes, a.out+n*bytes, a.in+bytes
		}
	}
	return a
}

// time is how long a link needs, in microseconds.
func (w *traffic) time(id wire.LinkID, l *load) float64 {
	left := func(crowd float64) float64 {
		if !w.crowds || l.pairs < 2 {
			return 1
		}
		return 1 - crowd*(1-1/float64(l.pairs))
	}
	bytes := l.loads/left(w.crowdLoad) + l.stores/left(w.crowdStore) + l.shared/w.class.MulticastEff + l.wire
	return bytes / (float64(w.Capacity(id)) * 1e-3)
}

// fullest is the time in microseconds that the fullest link needs.
func (w *traffic) fullest() (us float64) {
	for id := range w.links {
		us = max(us, w.time(wire.LinkID(id), &w.links[id]))
	}
	return us
}

// fullestOf is that of the links between nodes, or of the others.
func (w *traffic) fullestOf(wired bool) (us float64) {
	for id := range w.links {
		if l := &w.links[id]; l.wire > 0 == wired {
			us = max(us, w.time(wire.LinkID(id), l))
		}
	}
	return us
}

// loads lists what the links carry.
func (w *traffic) loads() []exec.LinkLoad {
	var out []exec.LinkLoad
	for i := range w.links {
		id, l := wire.LinkID(i), &w.links[i]
		load := exec.LinkLoad{Name: w.Name(id), Capacity: units.GBps(float64(w.Capacity(id)) * 1e-6),
			Bytes: units.Bytes(l.loads + l.stores + l.shared + l.wire)}
		load.Busy = max(units.FromMicros(w.time(id, l)), load.Ideal())
		out = append(out, load)
	}
	return out
}
