package job

import (
	"encoding/binary"
	"fmt"

	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
)

// Network is the history of a packet network in a job: the states of ports and queue pairs over time. Jobs
// have millions of them, so they are stored as differences, about ten bytes each.
type Network struct {
	Pairs []Pair // by number
	Left  int64  // number of states beyond mostStates, which are not kept

	name   func(int32) string
	chunks [][]byte
	last   units.Time
	count  int64
}

// Pair is a queue pair of the packet network.
type Pair struct {
	Src, Dst int32 // ranks of the job
	Channel  int32
	Number   int32  // index among the queue pairs of its connection
	Of       string // the call, if another call has an equal queue pair too
}

// PortState is a state of a port or of a queue pair.
type PortState = sim.PortState

// mostStates is the largest number of states kept of a job, as many as a trace has events.
const mostStates = 20e6

// chunk is the size in bytes of a block of encoded states.
const chunk = 1 << 18

// Link returns the name of a link.
func (n *Network) Link(l int32) string { return n.name(l) }

// add appends a state; beyond mostStates it only counts it.
func (n *Network) add(s sim.PortState) {
	if n.count++; n.count > mostStates {
		n.Left++
		return
	}
	at := len(n.chunks) - 1
	if at < 0 || len(n.chunks[at]) > chunk-6*binary.MaxVarintLen64 {
		n.chunks = append(n.chunks, make([]byte, 0, chunk))
		at++
	}
	b := binary.AppendUvarint(n.chunks[at], uint64(s.At-n.last))
	n.last = s.At
	if s.Queue >= 0 {
		b = binary.AppendUvarint(b, uint64(s.Queue)<<1|1)
		b = binary.AppendUvarint(b, uint64(s.Rate))
	} else {
		b = binary.AppendUvarint(b, uint64(s.Link)<<1)
		b = binary.AppendUvarint(b, uint64(s.Queued))
		b = binary.AppendUvarint(b, uint64(s.Marks))
		b = binary.AppendUvarint(b, bit(s.Paused)|bit(s.Credits)<<1)
	}
	n.chunks[at] = b
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Each calls do for the states in the order of time.
func (n *Network) Each(do func(*PortState)) {
	var at units.Time
	for _, b := range n.chunks {
		next := func() int64 {
			x, size := binary.Uvarint(b)
			b = b[size:]
			return int64(x)
		}
		for len(b) > 0 {
			at += units.Time(next())
			s := sim.PortState{At: at, Link: -1, Queue: -1}
			if id := next(); id&1 == 1 {
				s.Queue, s.Rate = int32(id>>1), next()
			} else {
				s.Link, s.Queued, s.Marks = int32(id>>1), units.Bytes(next()), next()
				flags := next()
				s.Paused, s.Credits = flags&1 != 0, flags&2 != 0
			}
			do(&s)
		}
	}
}

// observe makes the Network that records the packet network of the session's calls.
func (b *steps) observe() *Network {
	n := &Network{name: b.s.Link}
	of := map[int32]int32{} // plan of the session: its first call
	for i, k := range b.kinds {
		if _, ok := of[k]; !ok {
			of[k] = int32(i)
		}
	}
	same := map[sim.QueuePair]int{}
	list := b.s.QueuePairs()
	plain := func(q sim.QueuePair) sim.QueuePair {
		q.Plan = 0
		return q
	}
	for _, q := range list {
		same[plain(q)]++
	}
	for _, q := range list {
		p := Pair{Src: q.Src, Dst: q.Dst, Channel: q.Channel, Number: q.Number}
		if same[plain(q)] > 1 {
			c := &b.c.p.Calls[of[q.Plan]]
			p.Of = fmt.Sprintf("%s of %d bytes on %s", c.Func, c.Bytes(), b.c.p.Comms[c.Comm].Name)
		}
		n.Pairs = append(n.Pairs, p)
	}
	if len(list) > 0 {
		b.s.Observe(n.add)
	}
	return n
}
