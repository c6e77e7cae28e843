package sim

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// What a frame takes of a processor of 2.5 GHz from host to host: as much again where so
// many connections take turns at a port, since few frames of one then follow each
// other (without jitter they do so at the same instants, and so many more it takes), and as
// much again where there is more than one switch. Ranks and messages cost
// what they do without frames (forecast.go). Runs of 16 to 128 ranks took from half of
// the forecast to twice that (docs/PACKETS.md). What takes more than mostFramed is refused, but
// with Unfolded.
const (
	frameTime  = 300 * units.Nanosecond
	frameCrowd = 30
	lockstep   = 4
	mostFramed = 300 * units.Second
)

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
