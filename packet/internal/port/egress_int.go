package port

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// INTEgress sends frames of an egress port back to back and adds the port's telemetry record (INT) to each data frame. Times are
// in ps.
type INTEgress struct {
	*Link
	Flows     *cc.Flows
	Calendar  *tiebreak.Calendar // nil: the order of events does not count
	Links     []Link
	In        []int32        // links, by the port by which frames come
	Full, Ack uint16         // bytes of frames
	Arrived   []frames.Frame // in the window
	From      []uint16       // the ports by which they came, with a calendar
	Keys      []uint64       // of those that leave by this port, in order; Send removes those of frames that it sent
	Come      int            // keys of frames that have come; nothing else waits
	Sent      int            // keys of frames that Send sent
	Data      int            // those of them that are data frames
}

// Send sends frames up to the first that does not start before end, may be marked or has a size that is not known.
func (p *INTEgress) Send(end int64) {
	l, q, n := p.Link, &p.Wire, len(p.Keys)
	for int(q.Tail-q.Head)+n > len(q.Buf) {
		q.Grow()
	}
	var row []tiebreak.Entry
	var by, step tiebreak.Number
	if p.Calendar != nil {
		row, by, step = p.Calendar.Row(n)
	}
	joins := p.Come > 0 || n > 0 && p.Arrived[p.Keys[0]&arrivals.Place].At <= l.Free
	free := l.Free
	by = p.start(row, by, step, end)
	if n = p.Sent; n == 0 {
		return
	}
	if p.Calendar != nil {
		if joins {
			row[0] = tiebreak.Began(l.Begun, free)
		}
		p.Calendar.Took(n)
		l.Start, l.Begun = row[n-1].At(), by
	}
	if p.Data > 0 {
		p.stamp()
	}
	q.Tail += uint32(n)
	l.Sent += uint64(n)
	data := int64(p.Data) * int64(l.Sizes[0])
	l.Data += data
	l.TxBytes += data + int64(n-p.Data)*int64(l.Sizes[1])
}

// start lets frames start and puts them behind the link's last, in row what began, and in place of a key the bytes that the
// frame leaves behind. The loop calls nothing, so that what it needs stays in registers. It returns the number of the last.
func (p *INTEgress) start(row []tiebreak.Entry, by, step tiebreak.Number, end int64) tiebreak.Number {
	l, arrived, keys, come, buf := p.Link, p.Arrived, p.Keys, p.Come, p.Wire.Buf
	free, bytes, peak, to, n, acks := l.Free, l.Queues[1].Bytes, l.Peak, l.Wire.Tail, 0, 0
	mask := uint32(len(buf) - 1)
all:
	for n < len(keys) {
		f := &arrived[keys[n]&arrivals.Place]
		at, cause, behind, what := free, by, int64(0), f.Flags&frames.Ack
		if l.Sizes[what] != f.Size {
			break
		}
		if come == n && f.At > free {
			come++
			at, cause, peak = f.At, tiebreak.Number(f.Tag), max(peak, int64(f.Size))
		} else {
			for ; come < len(keys); come++ {
				i := keys[come] & arrivals.Place
				g := &arrived[i]
				if g.At >= free && (g.At > free || come > n && len(row) > 0) {
					if g.At > free {
						break
					}
					in, start, whole := &p.Links[p.In[p.From[i]]], l.Start, int64(0)
					if whole = in.Ack; g.Size == p.Full {
						whole = in.Whole
					} else if g.Size != p.Ack {
						break all
					}
					if uint(n-1) < uint(len(row)) {
						start = row[n-1].At()
					}
					if free-start > in.Delay+whole {
						break
					}
				}
				bytes += int64(g.Size)
				peak = max(peak, bytes)
			}
			if behind = bytes - int64(f.Size); free >= end || behind > l.Alert && l.Marks {
				break
			}
			bytes = behind
		}
		keys[n] = uint64(behind)
		if n < len(row) {
			row[n] = tiebreak.Began(cause, at)
		}
		by, free = (by+step)&^tiebreak.None, at+l.Lasts[what]
		g := &buf[to&mask]
		*g = *f
		g.At, g.Tag = free+l.Delay, uint32(by)
		acks += int(what)
		to++
		n++
	}
	l.Free, l.Queues[1].Bytes, l.Peak = free, bytes, peak
	p.Come, p.Sent, p.Data = come, n, n-acks
	return by
}

// stamp adds records to the data frames that were sent.
func (p *INTEgress) stamp() {
	l, buf, sent := p.Link, p.Wire.Buf, p.TxBytes
	before, to, mask, flows, rate := l.Delay+l.Lasts[0], l.Wire.Tail, uint32(len(buf)-1), p.Flows, l.Coded
	for _, behind := range p.Keys[:p.Sent] {
		f := &buf[to&mask]
		to++
		if f.Flags&frames.Ack == 0 {
			f.Aux = flows.Stamp(f.Aux, flows.Record(f.At-before, sent, int64(behind)), rate)
		}
		sent += int64(f.Size)
	}
}
