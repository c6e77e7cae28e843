package packet

import (
	"cmp"
	"errors"
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/streams"
)

// errOrder says that the order of events of one instant has come to count: the run
// begins anew with it.
var errOrder = errors.New("packet: the order of events counts")

// ordered says that the order of events counts from the start: where senders look at
// what each frame met, and where losses are drawn in turn.
func ordered(c *Config, n *Network) bool {
	lossy := slices.ContainsFunc(n.Cables, func(c Cable) bool { return c.Loss > 0 })
	return lossy || c.CC.Kind != NoCC && c.CC.Kind != DCQCN
}

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
	arriving []arriving // scratch
}

// arriving is a frame that arrives in this window.
type arriving struct {
	at, travel int64
	link       int32
	wire       uint32
	began      instant.Number
}

func (e *engine) buildLosses() {
	all := losses{numbers: streams.NewNumbers(e.cfg.LossStream, e.cfg.Seed)}
	for i := range e.net.Cables {
		c := &e.net.Cables[i]
		if c.Loss == 0 {
			continue
		}
		both := []int32{int32(2 * i), int32(2*i + 1)}
		e.links[2*i].drawn, e.links[2*i+1].drawn = true, true
		if c.SharedLoss {
			all.links = append(all.links, both...)
		} else {
			e.losses = append(e.losses, losses{links: both, numbers: all.numbers})
		}
	}
	if all.links != nil {
		e.losses = append(e.losses, all)
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
			for k := q.head; k != q.tail; k++ {
				f := &q.buf[k&uint32(len(q.buf)-1)]
				if f.at >= end {
					break
				}
				d.arriving = append(d.arriving, arriving{f.at, e.travel(id, f.size), id, k, instant.Number(f.tag)})
			}
		}
		slices.SortStableFunc(d.arriving, func(a, b arriving) int {
			if c := cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.travel, a.travel)); c != 0 {
				return c
			}
			return cmp.Compare(toInt(w.First(b.began, a.began)), toInt(w.First(a.began, b.began)))
		})
		for _, a := range d.arriving {
			if l := &e.links[a.link]; d.numbers.Draw() < l.loss {
				l.wire.buf[a.wire&uint32(len(l.wire.buf)-1)].flags |= flagLost
			}
		}
	}
}

// Kinds of draws.
const (
	drawMark = iota
	drawLoss
	drawPath
	drawCode
	drawSample
)

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
