package sim

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// foldMode says what ranks and channels may be represented by others.
type foldMode uint8

// Modes: exactly equivalent ones, nearly where it has to be; none; exactly
// equivalent ones at any cost; nearly equivalent ones wherever it can be done.
const (
	foldAuto foldMode = iota
	foldOff
	foldExact
	foldNear
)

// foldConfig is what decides which ranks are equivalent, beside the plan.
type foldConfig struct {
	Mode    foldMode
	Systems []*topo.System // by node
	Fabric  *fabric.Fabric
	Faults  []param.Fault
	Slow    []float64 // by rank, nil where no rank is a straggler
}

// UnfoldedRanks is the largest communicator that is simulated rank by rank
// where folding would not be exact.
const UnfoldedRanks = 512

// exactWork is the largest exact quotient, in slices, that FoldAuto runs beyond
// UnfoldedRanks where a near one is there: some tenths of a second.
const exactWork = 1 << 16

// possible reports whether ranks may be represented by others at all: a lossy
// port makes each different, a rank that is down represents no other, and queue
// pairs use the ports of a fused net in rotation.
func (c *foldConfig) possible() bool {
	return c.Mode != foldOff && c.foldable() && c.portsAlike() &&
		!slices.ContainsFunc(c.Faults, func(f param.Fault) bool { return f.Loss > 0 || f.Down || f.Port > 0 })
}

// portsAlike tells whether all nets are made of equally many ports, which their
// traffic then uses alike.
func (c *foldConfig) portsAlike() bool {
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

// layFolded fills in groups and connections of representatives; nil where every
// rank has to run.
func layFolded(e *engine, j *job, c *foldConfig) (*quotient, error) {
	if !c.possible() {
		return nil, nil
	}
	// How far off a near quotient is was seen on ideal networks.
	near := c.Fabric == nil && (c.Mode == foldNear || c.Mode == foldAuto && j.plan.Comm.NRanks > UnfoldedRanks)
	symmetries := c.symmetries(j.plan)
	for i, s := range symmetries {
		if near && c.skips(j.plan, s, symmetries[i+1:]) {
			continue
		}
		if q, err := layQuotient(e, j, s, near); q != nil || err != nil {
			return q, err
		}
	}
	return nil, nil
}

// skips tells whether a symmetry is left alone for one that gives near results.
func (c *foldConfig) skips(p *plan.Plan, s *symmetry, others []*symmetry) bool {
	if s.margin > 0 || c.Mode != foldNear && s.work(p) <= exactWork {
		return false
	}
	return slices.ContainsFunc(others, func(o *symmetry) bool { return o.margin > 0 })
}

// work is about how many slices the quotient by a symmetry runs.
func (s *symmetry) work(p *plan.Plan) int64 {
	n := int64(0)
	for _, pr := range p.Programs(s.reps[0].rank) {
		if pr.Channel == s.reps[0].channel {
			n += p.NumOps(&pr) * int64(max(1, pr.Slices))
		}
	}
	return n * int64(len(s.reps))
}

// layQuotient lays out the quotient by a symmetry; nil where that is neither exact
// nor, where that is allowed, known to be near.
func layQuotient(e *engine, j *job, s *symmetry, near bool) (*quotient, error) {
	if near = near && s.margin > 0; !s.alike && !near {
		return nil, nil
	}
	q := newQuotient(e, j, s)
	later, free, err := q.ways()
	if err != nil {
		return nil, err
	}
	if q.exact = q.exact && free; q.exact || near {
		seen, err := q.survey()
		if err != nil {
			return nil, err
		}
		if q.exact = q.exact && seen.same; q.exact || near {
			j.fold, seen.later, e.nw.Folded = q, later, true
			return q, seen.declare(e.nw.Table)
		}
	}
	e.devs, e.sms, e.groups, e.conns = nil, nil, nil, nil
	return nil, nil
}

// account reports how a folded run's times came about.
func (q *quotient) account() exec.Account {
	a := exec.Account{Programs: len(q.e.groups), Method: exec.Folded}
	if !q.exact {
		a.Method, a.Margin, a.Note = exec.Near, q.margin, fmt.Sprintf("%s; %d thread groups stand for all", q.leaves, len(q.e.groups))
	}
	return a
}
