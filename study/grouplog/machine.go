package grouplog

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
)

// Machine is a host and the communicators of its GPUs that groups use: the world, and
// its splits into halves {0,1}{2,3} and strides {0,2}{1,3}.
type Machine struct {
	site  *scenario.Site
	comms map[string]*member // by key
	order Order
}

// member is a communicator over some ranks of the world.
type member struct {
	name string // world, halves, strides
	*comm.Comm
	class *gpu.Class
}

// NewMachine returns the machine of a loaded site, which must be of one host.
func NewMachine(site *scenario.Site) (*Machine, error) {
	if n := site.Cluster.NHosts(); n != 1 {
		return nil,
			fmt.Errorf("groups are recorded on the GPUs of one node, and the machine has %d; give --nodes 1",
				n)
	}
	return &Machine{site: site, comms: map[string]*member{}}, nil
}

// sets returns the rank sets of a communicator's name, by color.
func (m *Machine) sets(name string) [][]int32 {
	n := m.site.Comm.NRanks
	color := func(int) int { return 0 }
	switch name {
	case "halves":
		color = func(r int) int { return r / 2 }
	case "strides":
		color = func(r int) int { return r % 2 }
	}
	var sets [][]int32
	for r := range n {
		for color(r) >= len(sets) {
			sets = append(sets, nil)
		}
		sets[color(r)] = append(sets[color(r)], int32(r))
	}
	return sets
}

// member returns the communicator over some ranks, made once.
// share says that a split shares the world's resources.
func (m *Machine) member(name string, ranks []int32, share bool) (*member, error) {
	at := key(name, ranks)
	if share {
		at += " shared"
	}
	if c := m.comms[at]; c != nil {
		return c, nil
	}
	out := &member{name: name, Comm: m.site.Comm, class: m.site.Class()}
	if len(ranks) < m.site.Comm.NRanks {
		part, err := m.site.Cluster.Subset(ranks, m.site.Config.Topo)
		if err != nil {
			return nil, err
		}
		p := m.site.Comm.Params
		if share {
			p.Connect.Top = connect.TopOf(m.site.Comm.Layout)
		}
		if out.Comm, err = comm.New(part.Cluster, p); err != nil {
			return nil, err
		}
	}
	m.comms[at] = out
	return out, nil
}

// setOrder sets the order in which communicators are launched.
func (m *Machine) setOrder(o Order) { m.order = o }

// calls returns the tasks of a group on a communicator of n ranks as calls of its members.
func calls(g *Group, name string, n int) []launch.Call {
	var out []launch.Call
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.Comm != name {
			continue
		}
		c := launch.Call{Func: t.Func, Type: t.Type, Op: t.Op, Count: t.Count, Root: int32(t.Root % n)}
		switch g.Mode {
		case "win":
			c.Windows = sym.Both
		case "reg":
			c.Registered = true
		}
		if t.Func != coll.SendRecv {
			out = append(out, c)
			continue
		}
		for r := range n {
			c.Rank, c.Peer, c.Func = int32(r), int32((r+t.Shift)%n), coll.Send
			out = append(out, c)
			c.Peer, c.Func = int32(((r-t.Shift)%n+n)%n), coll.Recv
			out = append(out, c)
		}
	}
	return out
}

// Launched is the kernels that one group launches on one communicator.
type Launched struct {
	Ranks   []int32 // of the world
	Kernels []launch.Kernel
	Lines   []Line

	member *member
	calls  []launch.Call
	set    int64 // bytes of a rank's buffers
}

// Launch plans a group on every communicator that it uses, in the order of the calls.
func (m *Machine) Launch(g *Group) ([]Launched, error) { return m.launch(g, launch.Eager) }

func (m *Machine) launch(g *Group, mode launch.Mode) ([]Launched, error) {
	var out []Launched
	var names []string
	for i := range g.Tasks {
		if name := g.Tasks[i].Comm; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		for _, ranks := range m.sets(name) {
			c, err := m.member(name, ranks, g.Mode == "split1")
			if err != nil {
				return nil, err
			}
			issued := calls(g, name, len(ranks))
			var kernels []launch.Kernel
			if len(ranks) > 1 { // one rank copies, call by call
				kernels, err = c.Group(issued, mode)
			}
			if err != nil {
				return nil, fmt.Errorf("group %d, communicator of ranks %v: %w", g.Number, ranks, err)
			}
			out = append(out, Launched{Ranks: ranks, Kernels: kernels, Lines: lines(kernels), member: c,
				calls: issued, set: g.set(m.site.Comm.NRanks)})
		}
	}
	slices.SortStableFunc(out, func(a, b Launched) int {
		return slices.Index(m.order, key(a.member.name, a.Ranks)) - slices.Index(m.order,
			key(b.member.name, b.Ranks))
	})
	return out, nil
}

// lines returns the lines that NCCL's rank 0 logs for kernels; it logs none for symmetric kernels.
func lines(kernels []launch.Kernel) []Line {
	var out []Line
	for i := range kernels {
		for _, t := range kernels[i].Tasks {
			out = append(out, Line{Func: t.Req.Func.String(), Bytes: t.Req.Count * int64(t.Req.Type.Size()),
				Algo: t.Req.Algo.LogName(), Proto: t.Req.Proto.LogName(),
				Lo: t.Split.ChannelLo, Hi: t.Split.ChannelHi})
		}
	}
	return out
}
