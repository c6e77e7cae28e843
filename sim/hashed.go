package sim

import (
	"context"
	"slices"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// Hash is how an operation's queue pairs may be spread over a network that chooses their
// routes by a hash. It is immutable.
type Hash struct {
	fabric *fabric.Fabric
	pairs  []hashedPair
	ways   []*way
	rates  []wire.Rate // by wire
}

// hashedPair is a queue pair between hosts.
type hashedPair struct {
	from, to fabric.End
	flow     uint64
	bytes    float64
	way      *way
}

// way is which wires the routes between two ports may take, hop by hop.
type way struct{ hops [][]int32 }

// Hashed returns how the queue pairs of a plan may be spread; nil where no hash changes how
// long it takes. A hash matters where one of the cables that it chooses among can be
// saturated: where all ports that may send over it, and all that may receive, are together
// faster than it is. What cannot be laid out is a *exec.NotImplementedError.
func (x *Executor) Hashed(ctx context.Context, p *plan.Plan) (*Hash, error) {
	f := x.cfg.Fabric
	if f == nil || f.Network.Routing != fabric.ECMP && f.Network.Routing != "" || x.cfg.Packets != nil &&
		x.cfg.Packets.Balanced() {
		return nil, nil
	}
	e := engine.New(&engine.Options{Class: &x.class, Systems: x.cfg.Systems, Model: &declared{},
		Network: x.cfg.network(), Place: x.cfg.Place, Kernels: 1}, p)
	e.Cancelled = ctx.Err
	if binds, err := binds(e, p); err != nil || !binds {
		return nil, err
	}
	if err := layable(p); err != nil {
		return nil, err
	}
	if err := e.LayAll(e.Jobs[0]); err != nil {
		return nil, err
	}
	h := &Hash{fabric: f, rates: make([]wire.Rate, len(f.Wires))}
	for i := range h.rates {
		h.rates[i] = e.Net.CableRate(int32(i))
	}
	bytes := make([]float64, len(e.Net.Conns))
	e.CountMessages(hashedOps, func(at int32, b float64) { bytes[at] += b })
	return h, h.lay(e, bytes)
}

// mostConns is the number of connections up to which is looked whether a hash can saturate a
// cable; of more it is taken for granted.
const mostConns = 1 << 22

// binds reports whether a hash can saturate a cable: of the routes that the connections of a
// plan may take, whichever they do.
func binds(e *engine.Engine, p *plan.Plan) (bool, error) {
	if p.NumConns() > mostConns {
		return true, nil
	}
	n, router := e.Net, e.Net.Fabric.Router()
	worst := make([]crossed, len(n.Fabric.Wires))
	seen := map[[2]host.Port]bool{}
	over := false
	for id := range p.NumConns() {
		if id%(1<<12) == 0 {
			if err := e.Poll(); err != nil {
				return false, err
			}
		}
		pc := p.Conn(id)
		if pc.Src < 0 || pc.Dst < 0 || pc.Kind == connect.NVLSRoute || pc.Route.Transport != connect.NET ||
			host.Reduces(&pc) {
			continue
		}
		src, dst := n.Ports(&pc)
		if seen[[2]host.Port{src, dst}] {
			continue
		}
		seen[[2]host.Port{src, dst}] = true
		out, in, err := n.EndRates(&pc)
		if err != nil {
			return false, err
		}
		n.Ends(&pc, func(from, to fabric.End, of wire.Rate) {
			if err != nil {
				return
			}
			err = router.Ways(from, to, func(wires []int32) {
				for _, w := range wires {
					over = worst[w].add(from, to, out/of, in/of, len(wires) > 1, n.CableRate(w)) || over
				}
			})
		})
		if err != nil || over {
			return over, err
		}
	}
	return false, nil
}

// hashedOps is how many ops are counted to weigh the queue pairs of an operation: of all
// programs, each of which has its connections in its first ones.
const hashedOps = 1 << 17

// lay lists the queue pairs.
func (h *Hash) lay(e *engine.Engine, bytes []float64) error {
	router := h.fabric.Router()
	known := map[[2]fabric.End]*way{}
	for at := range e.Net.Conns {
		if at%(1<<12) == 0 {
			if err := e.Poll(); err != nil {
				return err
			}
		}
		first := len(h.pairs)
		e.Net.Flows(int32(at), func(from, to fabric.End, flow uint64) {
			h.pairs = append(h.pairs, hashedPair{from: from, to: to, flow: flow})
		})
		added := h.pairs[first:]
		for i := range added {
			p := &added[i]
			p.bytes = bytes[at] / e.Net.Conns[at].Share() / float64(len(added))
			if p.way = known[[2]fabric.End{p.from, p.to}]; p.way != nil {
				continue
			}
			p.way = &way{}
			known[[2]fabric.End{p.from, p.to}] = p.way
			h.ways = append(h.ways, p.way)
			if err := router.Ways(p.from, p.to, func(wires []int32) {
				p.way.hops = append(p.way.hops, wires)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// crossed is what may cross a cable.
type crossed struct {
	out, in ends
	hashed  bool // not all of it must
}

// ends are ports with the sum of their rates.
type ends struct {
	ports map[fabric.End]bool
	sum   wire.Rate
}

func (e *ends) add(p fabric.End, r wire.Rate) {
	if e.ports == nil {
		e.ports = map[fabric.End]bool{}
	}
	if !e.ports[p] {
		e.ports[p] = true
		e.sum += r
	}
}

// add adds a pair of ports, and reports whether more may come over the cable than it carries.
func (c *crossed) add(from, to fabric.End, out, in wire.Rate, hashed bool, cable wire.Rate) bool {
	c.out.add(from, out)
	c.in.add(to, in)
	c.hashed = c.hashed || hashed
	return c.hashed && min(c.out.sum, c.in.sum) > cable
}

// asFull is the part of the fullest cable's load from which on another is as full.
const asFull = 0.999

// Loaded is a cable that a draw of the hash fills the most.
type Loaded struct {
	Name   string
	Pairs  int32      // queue pairs that take it
	Of     int32      // that take it or one of those beside it
	Beside int        // cables that would have done as well, it included
	Need   units.Time // at least, for what they carry over it
	Even   units.Time // for an equal part of what all of those beside it carry
}

// Fullest is the cable that needs the most time for what the hash of a seed puts on it, of
// those that it chooses among; of equal ones that of a name. Bytes are about those of the operation.
func (h *Hash) Fullest(seed uint64, name string) (Loaded, error) {
	router := h.fabric.Seeded(seed).Router()
	bytes, pairs := make([]float64, len(h.rates)), make([]int32, len(h.rates))
	var route []int32
	var err error
	for i := range h.pairs {
		p := &h.pairs[i]
		if route, err = router.Route(route[:0], p.from, p.to, p.flow); err != nil {
			return Loaded{}, err
		}
		for hop, w := range route {
			if len(p.way.hops[hop]) > 1 {
				bytes[w] += p.bytes
				pairs[w]++
			}
		}
	}
	need := func(w int) float64 { return bytes[w] / float64(h.rates[w]) }
	full := 0
	for w := range bytes {
		if need(w) > need(full) {
			full = w
		}
	}
	for w := range bytes {
		if h.fabric.Wires[w].Name == name && need(w) >= asFull*need(full) {
			full = w
		}
	}
	return h.loaded(int32(full), bytes, pairs), nil
}

// loaded describes a wire beside those that would have done as well: those that lead from the
// same switch to others or, where there are more of these, to the same switch from others.
func (h *Hash) loaded(w int32, bytes []float64, pairs []int32) Loaded {
	wires := h.fabric.Wires
	var up, down []int32
	for _, way := range h.ways {
		for _, hop := range way.hops {
			if len(hop) < 2 || !slices.Contains(hop, w) {
				continue
			}
			for _, k := range hop {
				if wires[k].From == wires[w].From && !slices.Contains(up, k) {
					up = append(up, k)
				}
				if wires[k].To == wires[w].To && !slices.Contains(down, k) {
					down = append(down, k)
				}
			}
		}
	}
	if len(down) > len(up) {
		up = down
	}
	l := Loaded{Name: wires[w].Name, Pairs: pairs[w], Beside: len(up)}
	sum, rate := 0.0, 0.0
	for _, k := range up {
		l.Of += pairs[k]
		sum, rate = sum+bytes[k], rate+float64(h.rates[k])
	}
	over := func(b, rate float64) units.Time { return units.Time(b * wire.NanoBytes / max(1, rate)) }
	l.Need, l.Even = over(bytes[w], float64(h.rates[w])), over(sum, rate)
	return l
}
