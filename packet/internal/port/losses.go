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
	At, Travel int64 // arrival and travel time (ps)
	Link       int32
	Wire       uint32 // position on the cable
	Began      tiebreak.Number
}

// SortArrivals sorts by arrival; simultaneous ones by the order in which ns-3 scheduled them: longest travel
// time first, then start of transmission.
func SortArrivals(all []Arrival, c *tiebreak.Calendar) {
	slices.SortStableFunc(all, func(a, b Arrival) int {
		if d := cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Travel, a.Travel)); d != 0 {
			return d
		}
		return c.Order(a.Began, b.Began)
	})
}

// LossDraws draws the losses of some links from one random stream, in the order of arrivals, as ns-3's error
// models do.
type LossDraws struct {
	links    []int32
	numbers  rng.Numbers
	arriving []Arrival // scratch
}

// NewLossDraws returns the draws for both directions of the given cables.
func NewLossDraws(cables []int32, numbers rng.Numbers) LossDraws {
	d := LossDraws{numbers: numbers}
	for _, i := range cables {
		d.links = append(d.links, 2*i, 2*i+1)
	}
	return d
}

// AllLossDraws makes a LossDraws for each group of cables, each with its own generator.
func AllLossDraws(groups [][]int32, stream, seed uint64) (all []LossDraws) {
	for _, cables := range groups {
		all = append(all, NewLossDraws(cables, rng.NewNumbers(stream, seed)))
	}
	return all
}

// Draw sets a flag on the lost ones of the frames that arrive before end. travel returns a frame's travel
// time on a link (ps); of returns a link's cable and loss probability.
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
