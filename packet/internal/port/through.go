package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// Lead is for how long, in ps, a switch at the end of a link has had the first bytes of a frame when its
// last bit arrives: so much earlier the frame is there for a port of a rate in bit/s. It is 0 where the
// frame is to be there as a whole: at hosts, without Config.CutThrough, and for faster ports, which would
// have to wait for the rest of it. Faults change nothing: on a cable that is slow no frame is there before
// its first bytes are.
func (l *Link) Lead(c *spec.Config, size uint16, rate int64) int64 {
	if l.Head == 0 || rate > l.Nominal {
		return 0
	}
	return max(0, c.Lasts(int(size), l.Nominal)-l.Head)
}

// Heads takes frames off links whose first bytes are at a cut-through switch: it sends them on from then, or
// once the port by which they leave is free.
type Heads struct {
	Config *spec.Config
	Links  []Link // all
	Due    []int64
	// Hops are the links of routes; nil: frames choose theirs at the switch, and are taken as ones for its
	// fastest port.
	Hops []int32
	Lose func(l *Link, f *frames.Frame) bool
}

// Take appends what comes over links before end, and adds its bytes to those that arrive by each; the switch
// sends over others.
func (x *Heads) Take(in, out []int32, end int64, arriving []int64, into []frames.Frame) []frames.Frame {
	fastest := int64(0)
	for _, id := range out {
		fastest = max(fastest, x.Links[id].Nominal)
	}
	for p, id := range in {
		l := &x.Links[id]
		for ; !l.Wire.Empty(); l.Wire.Head++ {
			f, rate := *l.Wire.Front(), fastest
			if f.Flow >= 0 {
				if x.Hops != nil {
					rate = x.Links[x.Hops[f.Route+1]].Nominal
				}
				f.At -= l.Lead(x.Config, f.Size, rate)
			}
			if f.At >= end {
				break
			}
			if l.Lossy && x.Lose(l, &f) {
				continue
			}
			f.Tag = uint32(p)
			f.Route++
			arriving[p] += int64(f.Size)
			into = append(into, f)
		}
		x.Due[id] = l.Wire.First()
	}
	return into
}
