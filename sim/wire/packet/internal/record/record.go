// Package record lets a port send frames one after the other, of which each data frame takes a record of the port along.
//
// In: frames that come to the port, in order. Out: frames on its link, what began, in a calendar, and
// records of HPCC. It must not know hosts, or how frames find their ways.
package record

import (
	"github.com/simccl/simccl/sim/wire/packet/cc"
	"github.com/simccl/simccl/sim/wire/packet/internal/frames"
	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/parted"
	"github.com/simccl/simccl/sim/wire/packet/internal/port"
	"github.com/simccl/simccl/sim/wire/packet/spec"
)

// Port is a port that sends, and what comes to it. Times are in ps.
type Port struct {
	*port.Link
	Flows     *cc.Flows
	Calendar  *instant.Calendar // nil: the order of events does not count
	Config    *spec.Config
	Links     []port.Link
	In        []int32        // links, by the port by which frames come
	Full, Ack uint16         // bytes of frames
	Arrived   []frames.Frame // in the window
	From      []uint16       // the ports by which they came, with a calendar
	Keys      []uint64       // of those that leave by this port, in order
	Begun     int            // keys of frames that have started
	Come      int            // and of those that have come; nothing else waits
	Data      int            // data frames that Send sent
}

// Send sends frames up to the first that does not start before end, may be marked or has a size that is not known, and
// returns how many those are. The loop calls nothing but for ties, so that what it needs stays in registers.
func (p *Port) Send(end int64) int {
	l, q, arrived, keys, begun, come := p.Link, &p.Wire, p.Arrived, p.Keys, p.Begun, p.Come
	for int(q.Tail-q.Head)+len(keys)-begun > len(q.Buf) {
		q.Grow()
	}
	var row []instant.Entry
	last, by, step := l.Begun, instant.Number(0), instant.Number(0) // the one in transmission
	if p.Calendar != nil {
		row, by, step = p.Calendar.Row(len(keys) - begun)
	}
	free, start, bytes, peak, alert, sent, n, data := l.Free, l.Start, l.Queues[1].Bytes, l.Peak, l.Alert, l.TxBytes, 0, 0
	if !l.Marks {
		alert = 1<<63 - 1
	}
	for buf := q.Buf; begun < len(keys); n++ {
		f, idle := &arrived[keys[begun]&parted.Place], false
		at, cause, behind := free, last, int64(0)
		if idle = come == begun && f.At > free; idle {
			at, cause = f.At, instant.Number(f.Tag)
		} else {
			for ; come < len(keys); come++ {
				i := keys[come] & parted.Place
				g := &arrived[i]
				if g.At >= free && (g.At > free || come > begun && len(row) > 0 && free-start > p.travel(i)) {
					break
				}
				bytes += int64(g.Size)
				peak = max(peak, bytes)
			}
			behind = bytes - int64(f.Size)
		}
		what := f.Flags & frames.Ack
		if at >= end || behind > alert || l.Sizes[what] != f.Size {
			break
		}
		if f.Flags&(frames.Ack|frames.Trim) == 0 {
			p.Flows.Telemetry(f.Flow).Stamp(f.Aux, p.Flows.Record(at, sent, behind), l.Rate)
			data++
		}
		if idle {
			come++
			peak = max(peak, int64(f.Size))
		} else {
			bytes = behind
		}
		begun++
		if n < len(row) {
			row[n] = instant.Began(cause, at)
		}
		by = (by + step) &^ instant.None
		last, start, free, sent = by, at, at+l.Lasts[what], sent+int64(f.Size)
		g := &buf[(q.Tail+uint32(n))&uint32(len(buf)-1)]
		*g = *f
		g.At, g.Tag = free+l.Delay, uint32(by)
	}
	if n > 0 && p.Calendar != nil {
		p.Calendar.Took(n)
		l.Start, l.Begun = start, last
	}
	q.Tail += uint32(n)
	l.Free, l.Queues[1].Bytes, l.Peak, l.TxBytes, l.Sent = free, bytes, peak, sent, l.Sent+uint64(n)
	p.Begun, p.Come, p.Data = begun, come, data
	return n
}

// travel is for how long a frame that arrived was on its way.
func (p *Port) travel(i uint64) int64 {
	return p.Links[p.In[p.From[i]]].Travel(p.Config, p.Arrived[i].Size, p.Full, p.Ack)
}
