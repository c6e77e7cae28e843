package sim

import (
	"fmt"
	"math"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/units"
)

// What a run of the simulator costs, by one model: of every rank and of quotients, of transfers one by one,
// and frame by frame. Whatever is decided by cost, and refused for it, is decided by this.

// What a run takes of a processor of 2.5 GHz, as seen on Ring, Tree, NVLSTree and
// alltoall of 128 to 4,096 ranks with slow ports and over leaf-spine networks: each
// piece, as much again for every crowded other messages of its port, and each
// connection that is laid out. Where all send to all over cables that they share, each
// message changes the rates of many others, and these those of others: from meshCrowd
// messages on, a piece takes so much longer as their number to a power. Runs took from
// a quarter to three times that.
const (
	pieceTime   = units.Microsecond
	crowded     = 12
	connTime    = 15 * units.Microsecond
	connBytes   = 17 << 10 // with the programs of its ranks and its route
	switchCrowd = 1.5      // messages of all to all that meet on a cable, for one at a port

	meshCrowd                      = 180.0
	meshPieces                     = 17.5 // at meshCrowd
	meshPower, meshPowerSmall      = 4, 3
	smallTransfer, meshPiecesSmall = 32 << 10, 8.0

	// nvlsTreeTimes is of NVLSTree where ranks run one by one, those of a node all waiting for each of
	// its heads: pieces of 64 to 512 ranks took 1.9 to 2.7 times the above.
	nvlsTreeTimes = 2.3

	// A frame takes frameTime from host to host: as much again where frameCrowd connections take turns at a
	// port, since few frames of one then follow each other (in lockstep they do so at the same instants, and
	// so many more it takes), and as much again where there is more than one switch. Runs of 16 to 128 ranks
	// took from half of the forecast to twice that (docs/PACKETS.md).
	frameTime  = 300 * units.Nanosecond
	frameCrowd = 30
	lockstep   = 4
)

// What costs more is refused, but by FoldExact and Unfolded; frame by frame what takes more than mostFramed,
// but by Unfolded; and of ranks each by itself what holds more than mostInsisted, by all. Beyond nearTime a
// near quotient is taken where there is one.
const (
	nearTime     = 5 * wholeTime
	mostTime     = 60 * units.Second
	mostFramed   = 300 * units.Second
	mostMemory   = 6 << 30 // bytes
	mostInsisted = 32 << 30
)

// cost is what a run will take.
type cost struct {
	pieces float64 // slices of Simple and ops of LL and LL128, of all groups and kernels
	crowd  float64 // messages that a port may have at a time
	conns  float64 // that are laid out
	mesh   float64 // 0, or as how many pieces one of all to all over shared cables counts
	times  float64 // 0, or by how much more than its pieces and crowd say a run takes
}

// costOf forecasts a run: of a quotient by what is laid out, of every rank by the
// programs of the first.
func (x *Executor) costOf(p *plan.Plan, e *engine.Engine, q *fold.Quotient) (c cost) {
	if c = costLaid(e); q == nil {
		c = x.costOfAll(p, int64(e.Jobs[0].Kernels))
	}
	if p.Req.Algo == coll.NVLSTree && !x.plain() {
		c.times = nvlsTreeTimes
	}
	return c
}

// costLaid forecasts a run of what is laid out.
func costLaid(e *engine.Engine) cost {
	c := cost{conns: float64(len(e.Conns))}
	for i := range e.Groups {
		g := &e.Groups[i]
		n := g.Job.Plan.NumOps(&g.Program) * int64(max(1, g.Program.Slices))
		c.pieces += float64(n * int64(g.Job.Kernels))
	}
	return c
}

// costOfAll forecasts a run of every rank by the programs of the first.
func (x *Executor) costOfAll(p *plan.Plan, kernels int64) cost {
	_, all := pieces(p)
	c := cost{pieces: float64(all) * float64(kernels), conns: float64(p.NumConns()) * float64(p.Sharing()),
		crowd: crowdOf(p)}
	if x.cfg.Fabric != nil && p.ConnsPerRank() == 0 {
		c.crowd *= switchCrowd
		x := c.crowd / meshCrowd
		c.mesh = meshPieces * math.Pow(x, meshPower)
		if p.Req.Count*int64(p.Req.Type.Size()) <= smallTransfer {
			c.mesh = meshPiecesSmall * math.Pow(x, meshPowerSmall)
		}
	}
	return c
}

// crowdOf is how many connections of a plan a port of the first node sends on.
func crowdOf(p *plan.Plan) float64 {
	c := p.Comm
	if p.ConnsPerRank() == 0 { // sends: to all ranks of other nodes, over as many ports as there are ranks
		if !p.Req.Func.IsP2P() || p.NumConns() < int32(c.NRanks) {
			return 0
		}
		return float64(p.NumConns()) / float64(c.NRanks) * float64(c.NNodes-1) / float64(c.NNodes)
	}
	ports, all := map[int32]bool{}, 0
	for k := range int32(p.Split.NChannels) {
		for _, r := range c.NodeRanks[0] {
			for j := range p.ConnsPerRank() {
				pc := p.Conn((k*int32(c.NRanks)+r)*p.ConnsPerRank() + j)
				if pc.Src >= 0 && pc.Dst >= 0 && c.NodeOf[pc.Src] == 0 && c.NodeOf[pc.Dst] != 0 {
					ports[pc.Route.SrcNet] = true
					all++
				}
			}
		}
	}
	return float64(all) / float64(max(1, len(ports)))
}

// weight is as how many pieces one counts.
func (c cost) weight() float64 {
	alone := (1 + c.crowd/crowded) * max(1, c.times)
	if c.mesh > 0 && c.crowd > meshCrowd {
		return max(c.mesh, alone/2)
	}
	return alone
}

// time is the processor's.
func (c cost) time() units.Time {
	return units.Time(min(c.pieces*c.weight()*float64(pieceTime)+c.conns*float64(connTime), math.MaxInt64/2))
}

// memory is what is held at a time.
func (c cost) memory() float64 { return c.conns * connBytes }

// part is the cost of so many of n equal parts.
func (c cost) part(some, n int64) cost {
	c.pieces *= float64(some) / float64(n)
	return c
}

// fit is how many of n equal parts, and half as many again, take so long: an even
// number.
func (c cost) fit(n int64, within units.Time) int64 {
	c.conns = 0
	return int64(float64(n)*float64(within)/float64(max(1, c.time()))/1.5) / 2 * 2
}

// roughly is a time in seconds, minutes or hours.
func roughly(t units.Time) string {
	switch s := float64(t) / float64(units.Second); {
	case s < 120:
		return fmt.Sprintf("%.0f s", s)
	case s < 7200:
		return fmt.Sprintf("%.0f minutes", s/60)
	default:
		return fmt.Sprintf("%.0f hours", s/3600)
	}
}

// refuse refuses what costs too much, with the forecast and what to do.
func (c cost) refuse(p *plan.Plan) error {
	if c.time() <= mostTime && c.memory() <= mostMemory {
		return nil
	}
	l := p.Layout(0)
	var why strings.Builder
	whose, less := "ranks that differ", "leave --fabric or --fault away"
	switch {
	case p.Req.Pairs != nil:
		whose, less = "ranks of unequal parts", "give equal parts (alltoall)"
	case p.Members() != nil:
		whose, less = "ranks in one group", "put fewer operations into a group (-m)"
	}
	fmt.Fprintf(&why, "its %.3g steps over %.3g connections would take some %s of a processor and %.1f GB",
		c.pieces, c.conns, roughly(c.time()), c.memory()/(1<<30))
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %d bytes over %d %s", p.Req.Func, max(l.Input, l.Output), p.Comm.NRanks,
			whose),
		Missing: why.String() + "; take fewer nodes or a smaller size, " + less +
			", or insist with --fold exact",
	}
}

// affordable refuses what would take minutes for no more insight: bytes in a steady state add time in
// proportion, so a smaller size shows the bandwidth too. FoldExact and Unfolded run at any cost.
func (x *Executor) affordable(p *plan.Plan, c cost) error {
	if x.cfg.Fold == FoldExact || x.cfg.Fold == Unfolded || c.time() <= x.afford {
		return nil
	}
	l := p.Layout(0)
	size, insist := max(l.Input, l.Output), "--fold exact"
	if x.cfg.Packets != nil {
		insist = "--fold off"
	}
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %d bytes, step by step", p.Req.Func, size),
		Missing: fmt.Sprintf("its %.3g steps would take some %s of a processor; take a %d times "+
			"smaller size or larger chunks, or insist with %s",
			c.pieces, roughly(c.time()), (c.time()+x.afford-1)/x.afford, insist),
	}
}

// affordTransfers refuses to simulate sends and receives of different peers, which have different times,
// where they are too many: of an alltoall folded onto one rank, and of a root's gather or scatter, all are
// simulated. 102,400 take 3 s of a processor and 1.1 GB. FoldExact and Unfolded run them at any cost.
func affordTransfers(p *plan.Plan, n int64, mode Folding) error {
	c := cost{pieces: float64(n), conns: float64(n)}
	if c.memory() <= mostMemory || mode == FoldExact || mode == Unfolded {
		return nil
	}
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %d ranks, transfer by transfer", p.Req.Func, p.Comm.NRanks),
		Missing: fmt.Sprintf("its %d transfers would take some %.0f GB and %s of a processor; take fewer "+
			"nodes, or insist with --fold exact", n, c.memory()/(1<<30), roughly(c.time())),
	}
}

// fits refuses a run of every rank that memory would not hold: 1,024 ranks that all send to all have a
// million connections, which took 16 GB.
func (x *Executor) fits(p *plan.Plan) error {
	if f := p.Req.Func; f == coll.Gather || f == coll.Scatter {
		if err := affordTransfers(p, int64(p.Comm.NRanks), x.cfg.Fold); err != nil {
			return err
		}
	}
	c, most := cost{conns: float64(p.NumConns()) * float64(p.Sharing())}, float64(mostInsisted)
	remedy := "a run without --trace and --fold off, and without losses, folds equivalent ranks"
	if x.cfg.Fold == FoldAuto { // a trace, which was not asked to run at any cost
		most = mostMemory
		remedy += "; insist with --fold off"
	}
	if c.memory() <= most {
		return nil
	}
	if x.chains {
		remedy = "channels drift apart along its chain; --fold near leaves the middle out"
	}
	if x.cfg.Fabric != nil {
		remedy = "over a network, ranks fold where no cable can be saturated (docs/FABRIC.md)"
	}
	return &exec.NotImplementedError{Feature: fmt.Sprintf("%v of %d ranks, each simulated by itself",
		p.Req.Func, p.Comm.NRanks),
		Missing: fmt.Sprintf("%.0f connections would take some %.0f GB; %s; or take fewer nodes", c.conns,
			c.memory()/(1<<30), remedy)}
}

// frames forecasts what a run sends frame by frame, and what that costs.
func (x *Executor) frames(p *plan.Plan, kernels int64) (frames float64, c cost, took units.Time) {
	_, all := pieces(p)
	c = cost{pieces: float64(all * kernels), conns: float64(p.NumConns()) * float64(p.Sharing()),
		crowd: crowdOf(p)}
	if f := p.Req.Func; f.IsP2P() && f.Rooted() {
		c.crowd = 0
	}
	if x.jitters(p) == noJitter {
		c.crowd /= lockstep
	}
	frames = between(p) / float64(x.cfg.Packets.Frames.Payload) * float64(kernels)
	hops := 1.0
	if f := x.cfg.Fabric; f != nil && len(f.Network.Switches) > 1 {
		hops = 2
	}
	each := float64(frameTime) * (1 + c.crowd/frameCrowd) * hops
	return frames, c, c.time() + units.Time(frames*each)
}

// between is how many bytes of an operation cross from node to node.
func between(p *plan.Plan) float64 {
	l, nodes := p.Layout(0), float64(p.Comm.NNodes)
	size := float64(max(l.Input, l.Output))
	switch p.Req.Func {
	case coll.AllToAll:
		if p.Req.Pairs != nil {
			size = float64(p.Req.Count) * float64(p.Req.Type.Size()) * float64(p.Comm.NRanks)
		}
		// each rank sends what is for the ranks of other nodes
		return size * float64(p.Comm.NRanks) * (nodes - 1) / nodes
	case coll.Gather, coll.Scatter: // the root alone has all
		return size * (nodes - 1) / nodes
	case coll.SendRecv: // the last rank of a node to the first of the next
		return size * nodes
	case coll.AllReduce: // in rings and trees, up and down
		return 2 * size * (nodes - 1)
	}
	return size * (nodes - 1)
}

// framed refuses what takes too long frame by frame, with a forecast.
func (x *Executor) framed(p *plan.Plan, kernels int64) error {
	if x.cfg.Packets == nil || x.flowsOnly || x.cfg.Fold == Unfolded {
		return nil
	}
	frames, c, took := x.frames(p, kernels)
	if took <= mostFramed {
		return nil
	}
	l := p.Layout(0)
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %d bytes over %d ranks, frame by frame", p.Req.Func,
			max(l.Input, l.Output), p.Comm.NRanks),
		Missing: fmt.Sprintf("its %.3g frames and %.3g steps would take some %s of a processor; take fewer "+
			"nodes or a smaller size, write --network flow, or insist with --fold off",
			frames, c.pieces, roughly(took)),
	}
}
