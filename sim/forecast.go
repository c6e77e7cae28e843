package sim

import (
	"fmt"
	"math"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/units"
)

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
	connBytes   = 17 << 10
	switchCrowd = 1.5 // messages of all to all that meet on a cable, for one at a port

	meshCrowd                      = 180.0
	meshPieces                     = 17.5 // at meshCrowd
	meshSeen                       = 2.5  // times meshCrowd; beyond, time is taken to grow as the crowd does
	meshPower, meshPowerSmall      = 4, 3
	smallTransfer, meshPiecesSmall = 32 << 10, 8.0

	// nvlsTreeTimes is of NVLSTree over a network, whose ranks of a node all wait for each of
	// its heads: pieces of 128 to 512 ranks took 1.9 to 2.7 times the above.
	nvlsTreeTimes = 2.3
)

// What costs more is refused, but by FoldExact and Unfolded. Beyond nearTime a near
// quotient is taken where there is one.
const (
	nearTime   = 8 * units.Second
	mostTime   = 60 * units.Second
	mostMemory = 6 << 30
)

// cost is what a run will take.
type cost struct {
	pieces float64 // slices of Simple and ops of LL and LL128, of all groups and kernels
	crowd  float64 // messages that a port may have at a time
	conns  float64 // that are laid out
	mesh   float64 // 0, or as how many pieces one of all to all over shared cables counts
	times  float64 // 0, or by how much more than its pieces and crowd say a run takes
	// longest is how many ops the longest program has; 0 where none was looked at.
	longest int64
}

// costOf forecasts a run: of a quotient by what is laid out, of every rank by the
// programs of the first.
func (x *Executor) costOf(p *plan.Plan, e *engine.Engine, q *fold.Quotient) cost {
	if q != nil {
		return costLaid(e)
	}
	return x.costOfAll(p, int64(e.Jobs[0].Kernels))
}

// costLaid forecasts a run of what is laid out.
func costLaid(e *engine.Engine) cost {
	c := cost{conns: float64(len(e.Conns))}
	for i := range e.Groups {
		g := &e.Groups[i]
		n := g.Job.Plan.NumOps(&g.Program)
		c.longest = max(c.longest, n)
		c.pieces += float64(n * int64(max(1, g.Program.Slices)) * int64(g.Job.Kernels))
	}
	return c
}

// costOfAll forecasts a run of every rank by the programs of the first.
func (x *Executor) costOfAll(p *plan.Plan, kernels int64) cost {
	_, all := pieces(p)
	c := cost{pieces: float64(all) * float64(kernels), conns: float64(p.NumConns()) * float64(p.Sharing()),
		crowd: crowdOf(p)}
	for _, pr := range p.Programs(0) {
		c.longest = max(c.longest, p.NumOps(&pr))
	}
	if x.cfg.Fabric != nil && p.ConnsPerRank() == 0 {
		c.crowd *= switchCrowd
		x, beyond := c.crowd/meshCrowd, max(1, c.crowd/meshCrowd/meshSeen)
		x /= beyond
		c.mesh = meshPieces * math.Pow(x, meshPower) * beyond
		if p.Req.Count*int64(p.Req.Type.Size()) <= smallTransfer {
			c.mesh = meshPiecesSmall * math.Pow(x, meshPowerSmall) * beyond
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

// excessive reports whether a run is refused for its cost.
func (c cost) excessive() bool { return c.time() > mostTime || c.memory() > mostMemory }

// refuse refuses what costs too much, with the forecast and what to do.
func (c cost) refuse(p *plan.Plan) error {
	if !c.excessive() {
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
