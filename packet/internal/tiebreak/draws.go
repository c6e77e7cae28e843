package tiebreak

import (
	"math/bits"
	"slices"
)

const never = int64(1<<63 - 1)

// drawn is a draw with the calendar that recorded it.
type drawn struct {
	*draw
	c *Calendar
}

// drawAll makes the draws of a window that ends at a time, nanosecond by nanosecond.
func (r *Ranker) drawAll(end int64) {
	until := never
	if r.Wait {
		until = end
	}
	for k := range r.calendars[0].used {
		all := uint64(0)
		for _, c := range r.calendars {
			all |= c.used[k]
			c.used[k] = 0
		}
		for ; all != 0; all &= all - 1 {
			r.draw(64*k+bits.TrailingZeros64(all), until)
		}
	}
	for _, c := range r.calendars {
		c.wait(until)
	}
}

// draw makes the draws of one nanosecond before until, in the order of events.
func (r *Ranker) draw(at int, until int64) {
	if len(r.calendars) == 1 && r.alone(r.calendars[0], at, until) {
		return
	}
	all := r.drawn[:0]
	for _, c := range r.calendars {
		from := len(all)
		for n := c.heads[at]; n >= 0; n = c.draws[n].next {
			if c.draws[n].at < until {
				all = append(all, drawn{&c.draws[n], c})
			}
		}
		c.heads[at] = -1
		slices.Reverse(all[from:])
	}
	if len(all) > 1 { // of equal draws the first stays first
		slices.SortStableFunc(all, func(x, y drawn) int { return before(x.c.First(x.n, y.n)) })
	}
	for _, x := range all {
		r.number(x.draw)
	}
	r.drawn = all
}

// alone makes the draw of a nanosecond with a single one, the usual case; it returns false, without drawing,
// if there are several.
func (r *Ranker) alone(c *Calendar, at int, until int64) bool {
	d := &c.draws[c.heads[at]]
	if d.next >= 0 {
		return false
	}
	if c.heads[at] = -1; d.at < until {
		r.number(d)
	}
	return true
}

func (r *Ranker) number(d *draw) {
	if d.link == pfc {
		r.Skipped()
	} else {
		r.Marked(d.link, d.wire, d.p)
	}
}
