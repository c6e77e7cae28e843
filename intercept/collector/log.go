package collector

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/calls"
)

// host returns a thread's own time since the last event that it recorded for the GPU, waits excluded.
func (r *rank) host(t *thread) units.Time { return r.since(t, t.now) }

// since is host up to a time before the thread's clock.
func (r *rank) since(t *thread, at int64) units.Time {
	last, busy := r.threads[t.id], units.Time(at-t.waited)
	r.threads[t.id] = max(busy, last)
	return min(max(busy-last, 0), workload.MaxTime)
}

// streamOf numbers the streams of a GPU in the order of their use.
func (r *rank) streamOf(s *stream) int {
	n, ok := r.streams[s]
	if !ok {
		n = len(r.streams)
		r.streams[s] = n
	}
	return n
}

// recordCalls adds a group to the records of its GPUs, and returns where each call is.
func (c *Core) recordCalls(t *thread, ops []wireOp, members []*member) []int {
	where := make([]int, len(ops))
	began := map[*rank]bool{}
	for i := range ops {
		o, m := &ops[i], members[i]
		r := c.gpus[m.gpu()]
		if !began[r] {
			began[r] = true
			r.groups++
		}
		e := calls.Event{Kind: calls.Call, Thread: t.id, Host: r.host(t),
			Stream: r.streamOf(m.dev.stream(o.stream)), Group: r.groups, Comm: m.c.id,
			Func: coll.Func(o.fn), Type: coll.DataType(o.typ), Count: int64(o.count), Root: o.root,
			Scaled:  o.redop >= sumScaled,
			InPlace: o.flags&flagInPlace != 0, Registered: o.flags&flagRegistered != 0,
			Window: o.flags&flagWindow != 0}
		if e.Func.Reduces() && o.redop < sumScaled {
			e.Op = coll.RedOp(o.redop)
		}
		where[i] = len(r.events)
		r.events = append(r.events, e)
	}
	return where
}

// known returns a device's GPU; nil before its first communicator, which places it.
func (c *Core) known(d *device) *rank {
	if d.gpu < 0 {
		return nil
	}
	return c.gpus[d.gpu]
}

func (c *Core) recordSync(t *thread, d *device, id int64) {
	r := c.known(d)
	if r == nil || !t.worked || len(r.streams) == 0 {
		return
	}
	e := calls.Event{Kind: calls.Sync, Thread: t.id, All: true}
	if uint64(id)>>40 == streamMark { // the default stream waits for others, too
		s := d.stream(uint64(id))
		if _, used := r.streams[s]; !used {
			return
		}
		e.All, e.Stream = false, r.streamOf(s)
	}
	if n := len(r.events); n > 0 && r.events[n-1].Kind == calls.Sync && r.events[n-1] == e {
		return
	}
	e.Host = r.host(t)
	r.events = append(r.events, e)
}

// recordEvent returns where the record is, nil where the GPU is not known yet.
func (c *Core) recordEvent(t *thread, s *stream, kind calls.Kind, handle uint64) (*rank, int) {
	r := c.known(s.dev)
	if r == nil {
		return nil, 0
	}
	// Events are numbered as a GPU's streams use them first: those of a process depend on its threads.
	key := markKey{t.p, handle}
	number, ok := r.marks[key]
	if !ok {
		number = len(r.marks)
		r.marks[key] = number
	}
	r.events = append(r.events, calls.Event{Kind: kind, Thread: t.id, Host: r.host(t), Stream: r.streamOf(s),
		Event: number})
	return r, len(r.events) - 1
}

// maxCalls bounds the calls of all records, maxGroup those of a group: a gigabyte of events.
const (
	maxCalls = 8 << 20
	maxGroup = 1 << 20
)

// Feed takes the record of a process of size bytes, which the shim wrote under --time record: a head,
// of which the first 8 bytes are the number of calls, and pieces of calls.
func (c *Core) Feed(pid int, record io.ReaderAt, size int64) error {
	const head, piece, each = 4096, 1 << 20, 1 << 20 / opSize
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feeding = true
	if size < head {
		return nil
	}
	b := make([]byte, piece)
	if _, err := record.ReadAt(b[:8], 0); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(b)
	room := uint64((size-head)/piece*each + min((size-head)%piece/opSize, each))
	switch {
	case n > room:
		return fmt.Errorf("it says that it has %d calls, and its %d bytes have room for %d", n, size, room)
	case c.fed+int64(n) > maxCalls:
		return fmt.Errorf("with its %d calls there are more than %d of all processes; record a shorter run",
			n, maxCalls)
	}
	c.fed += int64(n)
	r := reader{c: c, p: c.recorded(pid), threads: map[uint32]*thread{}}
	for i := uint64(0); i < n; i += each {
		part := b[:opSize*min(n-i, each)]
		if _, err := record.ReadAt(part, head+int64(i/each)*piece); err != nil {
			return err
		}
		for len(part) > 0 {
			if err := r.add(readOp(part)); err != nil {
				return err
			}
			part = part[opSize:]
		}
	}
	r.flush()
	return nil
}

// reader puts the calls of a record into groups.
type reader struct {
	c       *Core
	p       *process
	threads map[uint32]*thread
	group   []wireOp
}

func (r *reader) add(o wireOp) error {
	if len(r.group) > 0 && r.group[0].group != o.group {
		r.flush()
	}
	if len(r.group) == maxGroup {
		return fmt.Errorf("a group of more than %d calls", maxGroup)
	}
	r.group = append(r.group, o)
	return nil
}

func (r *reader) flush() {
	if len(r.group) == 0 {
		return
	}
	first := &r.group[0]
	t := r.threads[first.thread]
	if t == nil {
		t = &thread{p: r.p, id: int(first.thread), worked: true, waited: first.time * 1000}
		r.threads[first.thread] = t
	}
	t.now = first.time * 1000
	r.c.feed(t, r.group)
	r.group = nil
}

// feed launches a group of a record; calls of communicators that were never complete are left out.
func (c *Core) feed(t *thread, ops []wireOp) {
	members := make([]*member, 0, len(ops))
	failed := false
	kept := ops[:0:0]
	for _, o := range ops {
		if o.comm < 1 || o.comm > uint64(len(c.members)) {
			continue
		}
		m := c.members[o.comm-1]
		if m.c == nil || !m.c.done || m.dev.gpu < 0 {
			continue
		}
		failed = failed || m.c.failed != 0
		members, kept = append(members, m), append(kept, o)
	}
	if len(kept) == 0 {
		return
	}
	where := c.recordCalls(t, kept, members)
	t.p.calls += len(kept)
	if !failed {
		c.launch(t, kept, members, where, 0, false)
	}
}

// Unmatched reports, once all records are fed, what no other rank has called.
func (c *Core) Unmatched() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := c.stuck(); text != "" {
		c.warn("calls that other ranks do not make:%s", text)
	}
}

// Result is the record of all that ran so far.
func (c *Core) Result(nccl string) *calls.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &calls.Record{NCCL: nccl, Clock: c.set.Clock.String()}
	for g, r := range c.gpus {
		if r.taken {
			out.Ranks = g + 1
		}
	}
	out.Ranks = max(out.Ranks, 1)
	number := c.number(out)
	out.Events = make([][]calls.Event, out.Ranks)
	for g := range out.Ranks {
		idle := map[int]units.Time{} // by thread: what it did before segments of nothing
		for i, e := range c.gpus[g].events {
			if c.gpus[g].dropped[i] {
				continue
			}
			e.Host = min(e.Host+idle[e.Thread], workload.MaxTime)
			if delete(idle, e.Thread); e.Kind == calls.Work && e.Time == 0 {
				idle[e.Thread] = e.Host
				continue
			}
			if e.Kind == calls.Call {
				e.Comm = number[e.Comm]
			}
			out.Events[g] = append(out.Events[g], e)
		}
	}
	c.repeat(out, number)
	return out
}

// repeat gives the ranks that are no process's the calls of those that do the same, in the
// order in which those make them, on their own communicators and with their own peers.
func (c *Core) repeat(out *calls.Record, number []int) {
	type pair struct{ gpu, like int }
	comms := map[pair]map[int]*member{}
	var order []pair
	for _, x := range c.comms {
		for _, m := range x.members {
			if m.like == nil {
				continue
			}
			p := pair{m.gpu(), m.like.gpu()}
			if comms[p] == nil {
				comms[p] = map[int]*member{}
				order = append(order, p)
			}
			comms[p][number[m.like.c.id]] = m
		}
	}
	for _, p := range order {
		for _, e := range out.Events[p.like] {
			if e.Kind == calls.Call {
				m := comms[p][e.Comm]
				if m == nil {
					continue
				}
				if e.Comm = number[m.c.id]; e.Func == coll.Send || e.Func == coll.Recv {
					e.Root = m.c.grid.Peer(e.Root, m.like.rank, m.rank)
				}
			}
			out.Events[p.gpu] = append(out.Events[p.gpu], e)
		}
	}
}

// number lists the communicators in an order that does not depend on which was
// complete first: parents, then by the first member's GPU and its communicators.
func (c *Core) number(out *calls.Record) []int {
	order := slices.Clone(c.comms)
	depth := func(x *comm) (n int) {
		for ; x.parent != nil; x = x.parent {
			n++
		}
		return n
	}
	slices.SortStableFunc(order, func(a, b *comm) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a.members[0].gpu(), b.members[0].gpu()),
			cmp.Compare(a.members[0].made, b.members[0].made))
	})
	number := make([]int, len(c.comms))
	for i, x := range order {
		number[x.id] = i
		y := calls.Comm{Ranks: x.gpus(), Share: x.share}
		if x.parent != nil {
			y.Parent = number[x.parent.id] + 1
		}
		out.Comms = append(out.Comms, y)
	}
	return number
}
