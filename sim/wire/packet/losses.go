package packet

import (
	"errors"

	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/lost"
	"github.com/simccl/simccl/sim/wire/packet/internal/streams"
	"github.com/simccl/simccl/sim/wire/packet/spec"
)

// errOrder says that the order of events of one instant has come to count: the run
// begins anew with it.
var errOrder = errors.New("packet: the order of events counts")

// errAgain says that frames are sent again, or that the run is to stop before all flows end: it begins anew
// with windows that are the same for all nodes, as what is in progress then depends on where they end.
var errAgain = errors.New("packet: where windows end counts")

// mustOrder says that frames are to be marked in a run without the order of events that is
// asked for, or will be: were the deepest queue to grow as before, it would get there.
func (e *engine) mustOrder() bool {
	if !e.cfg.EventOrder {
		return false
	}
	look, sent, deepest := false, int64(0), 0.0
	for i := range e.workers {
		w := &e.workers[i]
		look, sent, deepest = look || w.again, sent+w.sent, max(deepest, w.deepest)
		w.again = false
	}
	return look && (deepest > 1 || deepest*float64(e.frames) > float64(sent))
}

// losses are links whose losses are drawn in turn from one stream.
type losses struct {
	links    []int32
	numbers  streams.Numbers
	arriving []lost.Frame // scratch
}

func (e *engine) buildLosses() {
	numbers := streams.NewNumbers(e.cfg.LossStream, e.cfg.Seed)
	for _, cables := range spec.Lossy(e.net) {
		d := losses{numbers: numbers}
		for _, i := range cables {
			d.links = append(d.links, 2*i, 2*i+1)
			e.links[2*i].drawn, e.links[2*i+1].drawn = true, true
		}
		e.losses = append(e.losses, d)
	}
}

// drawLosses draws which of the frames that arrive before end are lost, in the order of
// their arrival.
func (e *engine) drawLosses(end int64) {
	w := &e.workers[0]
	for i := range e.losses {
		d := &e.losses[i]
		d.arriving = d.arriving[:0]
		for _, id := range d.links {
			q := &e.links[id].wire
			for k := q.Head; k != q.Tail; k++ {
				f := &q.Buf[k&uint32(len(q.Buf)-1)]
				if f.At >= end {
					break
				}
				d.arriving = append(d.arriving, lost.Frame{At: f.At, Travel: e.travel(id, f.Size), Link: id, Wire: k, Began: instant.Number(f.Tag)})
			}
		}
		lost.Order(d.arriving, &w.Calendar)
		for _, a := range d.arriving {
			if l := &e.links[a.Link]; d.numbers.Draw() < l.loss {
				l.wire.Buf[a.Wire&uint32(len(l.wire.Buf)-1)].Flags |= flagLost
			}
		}
	}
}
