package gen

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Links are what joins GPUs, in bytes a second of one GPU and direction: Near among Domain ranks in a row,
// Far beyond.
type Links struct {
	Near, Far float64
	Domain    int
}

// least is what a call takes at least: its bytes over the links of a rank.
func (l *Links) least(ranks []int32, c *workload.Call) units.Time {
	n, d, near := float64(len(ranks)), int32(max(l.Domain, 1)), 0.0
	for _, r := range ranks {
		if r/d == ranks[0]/d {
			near++
		}
	}
	bytes := float64(units.Bytes(c.Count) * c.Type.Size())
	in, far := bytes*(n-1), bytes*(n-near)/near // what a rank receives, and of it by the network
	switch c.Func {
	case coll.AllReduce: // a switch may sum up
		in, far = bytes, 2*bytes*(n-near)/n/near
	case coll.AllToAll:
		far = bytes * (n - near)
	case coll.Send, coll.Recv:
		in, far = bytes, bytes*min(n-near, 1)
	}
	return units.Time(max(in/l.Near, far/l.Far) * 1e12)
}

// Stages is the program of an iteration of m microbatches of one rank a stage: calls but those between stages
// are computations on their streams that take what they take at least, and those between stages have it as
// their recorded time. Played with nothing shared it takes no more than the job does. The error is an *Error.
func (c Config) Stages(l Links, m int) (*workload.Program, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.tensors(); err != nil {
		return nil, err
	}
	c.fit()
	g := newGenerator(&c, nil)
	g.m = min(m, g.whole)
	g.lists()
	each := int32(c.perStage())
	out := &workload.Program{Works: g.p.Works}
	comms, calls := map[int32]int32{}, map[int32]int32{}
	for stage := range int32(c.PP) {
		list := g.p.Lists[g.p.Of[stage*each]]
		for i := range list.Steps {
			s := &list.Steps[i]
			if s.Kind != workload.Issue {
				if s.Kind != workload.Compute { // the ends of a group
					*s = workload.Step{Kind: workload.Compute, Stream: streams[context], Deps: s.Deps}
				}
				continue
			}
			call := g.p.Calls[s.Call]
			comm := &g.p.Comms[call.Comm]
			if comm.Kind != workload.PP || call.Func == coll.AllReduce {
				t := l.least(comm.Ranks, &call)
				if call.Func == coll.Recv {
					t = 0 // its send takes it
				}
				*s = workload.Step{Kind: workload.Compute, Stream: s.Stream, Time: t, Deps: s.Deps}
				continue
			}
			if _, known := comms[call.Comm]; !known {
				comms[call.Comm] = int32(len(out.Comms))
				of := workload.Comm{Name: comm.Name, Kind: comm.Kind}
				for _, r := range comm.Ranks {
					of.Ranks = append(of.Ranks, r/each)
				}
				out.Comms = append(out.Comms, of)
			}
			at, known := calls[s.Call]
			if !known {
				at = int32(len(out.Calls))
				calls[s.Call] = at
				peer := comm.Ranks[call.Peer]
				call.Recorded = l.least([]int32{stage * each, peer}, &call)
				call.Comm = comms[call.Comm]
				out.Calls = append(out.Calls, call)
			}
			s.Call = at
		}
		out.Of = append(out.Of, stage)
		out.Lists = append(out.Lists, list)
	}
	return out, nil
}

// Microbatches is the number in an iteration.
func (c *Config) Microbatches() int { return int(c.GlobalBatch / (c.MicroBatch * int64(c.DP))) }
