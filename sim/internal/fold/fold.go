package fold

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// Config is what decides which ranks are equivalent, other than the plan.
type Config struct {
	Systems []*topo.System // by node
	Fabric  *fabric.Fabric
	Faults  []param.Fault
	Slow    []float64 // by rank, nil where no rank is a straggler
}

// A margin, by how much of a time it may be off, is a step of one scale: the least above what was seen beside
// runs of all ranks and iterations (docs/results/REDUCTIONS.md; make margins looks for what is beyond).
const (
	Within3  = 0.03
	Within5  = 0.05
	Within8  = 0.08
	Within10 = 0.10
	Within15 = 0.15
)

// A Proposal is a quotient of a plan that may hold.
type Proposal struct {
	*symmetry
	Exact  bool    // it is exact if Lay finds links and threads as it takes them
	Margin float64 // of the near quotient that it is where it is not exact; 0: it is none
	Few    bool    // it is near of few ranks, too
	Chain  bool    // it leaves the middle of a chain out
	// What it would run: about how many slices of a kernel, and how many parts of channels.
	Slices, Parts int64
	// Transfers are its sends with different peers, at least, of which each has its own times.
	Transfers int64
}

// possible reports whether ranks may be represented by others at all: a lossy
// port makes each different, a rank that is down represents no other, and queue
// pairs use the ports of a fused net in rotation.
func (c *Config) possible() bool {
	return c.foldable() && c.equalNets() &&
		!slices.ContainsFunc(c.Faults, func(f param.Fault) bool { return f.Loss > 0 || f.Down || f.Port > 0 })
}

// equalNets reports whether all nets are made of equally many ports, which their
// traffic then uses equally.
func (c *Config) equalNets() bool {
	of := -1
	for i, s := range c.Systems {
		if i > 0 && s == c.Systems[i-1] {
			continue
		}
		for _, id := range s.Of(topo.NET) {
			n := len(s.Nodes[id].Net.Fused)
			if of >= 0 && n != of || !host.EqualPorts(s.Nodes[id].Net) {
				return false
			}
			of = n
		}
	}
	return true
}

// Proposals lists the quotients of a plan that are worth trying, the smallest first.
func (c *Config) Proposals(p *plan.Plan) []*Proposal {
	if !c.possible() || p.Req.Pairs != nil { // of unequal counts no rank is like another
		return nil
	}
	var out []*Proposal
	for _, s := range c.symmetries(p) {
		one := &Proposal{symmetry: s, Exact: s.equivalent, Margin: s.margin, Few: s.few && !s.equivalent,
			Chain:  s.skipped != nil,
			Slices: s.work(p), Parts: int64(max(len(s.reps), s.parts))}
		if s.rotated {
			one.Transfers = s.transfers(p)
		}
		out = append(out, one)
	}
	return out
}

// work estimates how many slices the quotient by a symmetry runs, by which Proposals are ordered.
func (s *symmetry) work(p *plan.Plan) int64 {
	if s.rotated && p.Req.Func == coll.AllToAll { // of every transfer both ends
		n := 2 * int64(p.Comm.NRanks) * (1 + p.Req.Count*int64(p.Req.Type.Size())/int64(p.Comm.P2PChunkSize))
		if s.within {
			return n * int64(s.step)
		}
		return n * int64(p.Comm.MaxLocalRanks)
	}
	rep, each := part{int32(p.Split.ChannelLo), 0}, s.parts
	if s.list == nil {
		rep, each = s.reps[0], len(s.reps)
	}
	n := int64(0)
	for _, pr := range p.Programs(rep.rank) {
		if pr.Channel == rep.channel {
			n += p.NumOps(&pr) * int64(max(1, pr.Slices))
		}
	}
	return n * int64(each)
}

// Lay fills in groups and connections of a proposal's representatives; nil, and none is left, where
// the quotient is neither exact nor, where that is enough, known to be near.
func (c *Config) Lay(e *engine.Engine, j *engine.Job, of *Proposal, near bool) (*Quotient, error) {
	if err := e.Poll(); err != nil {
		return nil, err
	}
	s := of.symmetry
	if near = near && s.margin > 0; !s.equivalent && !near {
		return nil, nil
	}
	s.lay()
	q := newQuotient(e, j, s)
	later, free, err := q.latencies()
	if err != nil {
		return nil, err
	}
	if q.exact = q.exact && free; q.exact || near {
		seen, err := q.scan(near)
		if err != nil {
			return nil, err
		}
		if q.exact = q.exact && seen.holds; q.exact || near && (seen.holds && q.meets || !s.within) {
			j.Fold, seen.later, e.Net.Folded = q, later, true
			return q, seen.declare(e.Net.Table)
		}
	}
	e.Devices, e.SMs, e.Groups, e.Conns = nil, nil, nil, nil
	return nil, nil
}

// Drift returns the time of a chain's middle that was extrapolated though times from node to node change
// (see steady); 0 for all other quotients.
func (q *Quotient) Drift() units.Time { return q.drift }

// DriftMargin returns the margin of a time that contains an extrapolated middle (Drift), and whether that is
// too wide to use.
func DriftMargin(middle, all units.Time) (margin float64, tooMuch bool) {
	less := driftsLess * float64(middle) / float64(max(1, all))
	margin = max(Within8, less/(1-less))
	return margin, margin > Within15
}

// Account reports how a folded run's times came about.
func (q *Quotient) Account() exec.Account {
	a := exec.Account{Programs: len(q.e.Groups), Method: exec.Folded}
	if !q.exact {
		a.Method, a.Margin, a.Note = exec.Near, q.margin, fmt.Sprintf("%s; %d thread groups represent all",
			q.approximation, len(q.e.Groups))
	}
	return a
}
