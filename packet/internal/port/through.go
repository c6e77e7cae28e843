package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// Lead returns by how much (ps) a cut-through switch at the end of the link forwards a frame before its last
// bit arrives, to a port of a rate in bit/s. It is 0 at hosts, in store-and-forward switches, and towards
// faster ports, which would run out of bits. The cable's nominal rate is used, even during a fault.
func (l *Link) Lead(c *spec.Config, size uint16, rate int64) int64 {
	if l.Head == 0 || rate > l.Nominal {
		return 0
	}
	return max(0, c.Lasts(int(size), l.Nominal)-l.Head)
}

// Heads takes frames off the links of a cut-through switch by the arrival of their first bytes.
type Heads struct {
	Config *spec.Config
	Links  []Link  // all links
	Due    []int64 // by link: arrival of its first frame
	// routes; nil: frames choose their egress port at the switch and are treated as leaving by its fastest
	// port
	Hops []int32
	Lose func(l *Link, f *frames.Frame) bool
}

// Take appends the frames that arrive over links in before end, and adds their bytes to arriving, by port.
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
