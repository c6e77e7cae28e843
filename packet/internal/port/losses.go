package port

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// Arrival is a frame that arrives in this window.
type Arrival struct {
	At, Travel int64 // ps: when it arrives, and for how long it was on its way
	Link       int32
	Wire       uint32 // its place on the link
	Began      tiebreak.Number
}

// SortArrivals puts frames in the order of their arrivals; of one instant, that which was on its way the
// longest is first, then that which began first.
func SortArrivals(all []Arrival, c *tiebreak.Calendar) {
	slices.SortStableFunc(all, func(a, b Arrival) int {
		if d := cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Travel, a.Travel)); d != 0 {
			return d
		}
		return c.Order(a.Began, b.Began)
	})
}

// LossDraws are links whose losses are drawn in turn from one stream.
type LossDraws struct {
	links    []int32
	numbers  rng.Numbers
	arriving []Arrival // scratch
}

// NewLossDraws is for cables, both directions of each.
func NewLossDraws(cables []int32, numbers rng.Numbers) LossDraws {
	d := LossDraws{numbers: numbers}
	for _, i := range cables {
		d.links = append(d.links, 2*i, 2*i+1)
	}
	return d
}

// AllLossDraws is for groups of cables that each draw from a stream of the run with a seed.
func AllLossDraws(groups [][]int32, stream, seed uint64) (all []LossDraws) {
	for _, cables := range groups {
		all = append(all, NewLossDraws(cables, rng.NewNumbers(stream, seed)))
	}
	return all
}

// Draw sets a flag of the frames that arrive before a time and are lost. travel is for how long, in ps, a
// frame of a size is on its way over a link; of is what travels over one, and the share that is lost.
func (d *LossDraws) Draw(end int64, flag uint8, c *tiebreak.Calendar,
	travel func(link int32, size uint16) int64, of func(link int32) (*frames.Ring, float64)) {
	d.arriving = d.arriving[:0]
	for _, id := range d.links {
		q, _ := of(id)
		for k := q.Head; k != q.Tail; k++ {
			f := q.At(k)
			if f.At >= end {
				break
			}
			d.arriving = append(d.arriving, Arrival{At: f.At, Travel: travel(id, f.Size), Link: id, Wire: k,
				Began: tiebreak.Number(f.Tag)})
		}
	}
	SortArrivals(d.arriving, c)
	for _, a := range d.arriving {
		if q, share := of(a.Link); d.numbers.Draw() < share {
			q.At(a.Wire).Flags |= flag
		}
	}
}
