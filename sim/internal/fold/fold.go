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

// Mode says what ranks and channels may be represented by others.
type Mode uint8

// Modes: exactly equivalent ones, nearly where it has to be; none; exactly
// equivalent ones at any cost; nearly equivalent ones wherever it can be done; those that
// share jitter.
const (
	Auto Mode = iota
	Off
	Exact
	Near
	SameDraws
)

// Config is what decides which ranks are equivalent, other than the plan.
type Config struct {
	Mode    Mode
	Systems []*topo.System // by node
	Fabric  *fabric.Fabric
	Faults  []param.Fault
	Slow    []float64 // by rank, nil where no rank is a straggler
}

// UnfoldedRanks is the largest communicator that is simulated rank by rank
// where folding would not be exact.
const UnfoldedRanks = 512

// exactTime is what an exact quotient, or else a run of every rank, may cost by the forecast where
// a near quotient is there: more, and FoldAuto takes the near one. Sweeps of thirty sizes over
// an odd number of nodes take less than 4 s with it. A slice is taken for sliceTime, and each part
// of a channel that is laid out and scanned for partTime.
const (
	exactTime = 350 * units.Millisecond
	sliceTime = units.Microsecond
	partTime  = 15 * units.Microsecond
)

// possible reports whether ranks may be represented by others at all: a lossy
// port makes each different, a rank that is down represents no other, and queue
// pairs use the ports of a fused net in rotation.
func (c *Config) possible() bool {
	return c.Mode != Off && c.foldable() && c.equalNets() &&
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

// Lay fills in groups and connections of representatives; nil where every
// rank has to run.
func Lay(e *engine.Engine, j *engine.Job, c *Config) (*Quotient, error) {
	if !c.possible() || j.Plan.Req.Pairs != nil { // of unequal counts no rank is like another
		return nil, nil
	}
	// How far off a near quotient is was seen on ideal networks.
	near := c.Fabric == nil && (c.Mode == Near || c.Mode == Auto && j.Plan.Comm.NRanks > UnfoldedRanks)
	if c.Fabric == nil && !near && c.prefers(j) {
		return c.layFew(e, j)
	}
	symmetries := c.symmetries(j.Plan)
	var left []*symmetry
	for i, s := range symmetries {
		if near && c.skips(j, s, symmetries[i+1:]) {
			left = append(left, s)
			continue
		}
		if q, err := c.layQuotient(e, j, s, near); q != nil || err != nil {
			return q, err
		}
	}
	for _, s := range left { // what they were left for does not hold
		if q, err := c.layQuotient(e, j, s, near); q != nil || err != nil {
			return q, err
		}
	}
	return nil, nil
}

// skips reports whether a symmetry is left alone for one that gives near results.
func (c *Config) skips(j *engine.Job, s *symmetry, others []*symmetry) bool {
	if s.margin > 0 || c.Mode != Near && s.time(j) <= exactTime {
		return false
	}
	return slices.ContainsFunc(others, func(o *symmetry) bool { return o.margin > 0 })
}

// layFew lays out up to UnfoldedRanks: exactly, but for rings where that costs much and a near
// quotient is there.
func (c *Config) layFew(e *engine.Engine, j *engine.Job) (*Quotient, error) {
	all := c.symmetries(j.Plan)
	few := slices.ContainsFunc(all, func(s *symmetry) bool { return s.few && !s.equivalent })
	var first, then, last []*symmetry
	for _, s := range all {
		switch {
		case !s.equivalent:
			then = append(then, s)
		case few && (c.Mode == SameDraws && large(j.Plan, s.work(j.Plan), max(len(s.reps), s.parts)) ||
			c.Mode == Auto && s.time(j) > exactTime):
			last = append(last, s)
		default:
			first = append(first, s)
		}
	}
	for _, s := range slices.Concat(first, then, last) {
		if q, err := c.layQuotient(e, j, s, s.few && !s.equivalent); q != nil || err != nil {
			return q, err
		}
	}
	return nil, nil
}

// prefers reports whether a near quotient of few ranks may be taken: where a run of all costs much.
func (c *Config) prefers(j *engine.Job) bool {
	n, all := int64(0), j.Plan.Programs(0)
	for _, pr := range all {
		n += j.Plan.NumOps(&pr) * int64(max(1, pr.Slices))
	}
	ranks := int64(j.Plan.Comm.NRanks)
	return c.Mode == SameDraws && n*ranks > fewWork || c.Mode == Auto &&
		costOf(j, n*ranks, int64(len(all))*ranks) > exactTime
}

// time is about what the quotient by a symmetry costs.
func (s *symmetry) time(j *engine.Job) units.Time {
	return costOf(j, s.work(j.Plan), int64(max(len(s.reps), s.parts)))
}

// costOf is about what so many slices of each kernel cost, of so many parts of channels.
func costOf(j *engine.Job, slices, each int64) units.Time {
	return units.Time(min(slices*int64(j.Kernels), 1<<40))*sliceTime + units.Time(min(each, 1<<36))*partTime
}

// work is about how many slices the quotient by a symmetry runs.
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

// layQuotient lays out the quotient by a symmetry; nil where that is neither exact
// nor, where that is allowed, known to be near.
func (c *Config) layQuotient(e *engine.Engine, j *engine.Job, s *symmetry, near bool) (*Quotient, error) {
	if err := e.Poll(); err != nil {
		return nil, err
	}
	if near = near && s.margin > 0; !s.equivalent && !near {
		return nil, nil
	}
	if s.rotated {
		if err := Transfers(j.Plan, s.transfers(j.Plan), c.Mode); err != nil {
			return nil, err
		}
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

// Account reports how a folded run's times came about.
func (q *Quotient) Account() exec.Account {
	a := exec.Account{Programs: len(q.e.Groups), Method: exec.Folded}
	if !q.exact {
		a.Method, a.Margin, a.Note = exec.Near, q.margin, fmt.Sprintf("%s; %d thread groups represent all",
			q.approximation, len(q.e.Groups))
	}
	return a
}
