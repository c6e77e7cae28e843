package launch

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/units"
)

// mail is the sends and receives of a group: by rank and peer, in program order.
type mail struct {
	n        int
	messages []plan.Message
	sends    []queues // by rank
	recvs    []queues
	left     []int // by rank: number of sends and receives left
	copies   []bool
	direct   bool  // all buffers are registered
	aside    int64 // plan.Request's Misalign, equal for all
}

// expand makes the sends and receives of all calls (taskAppend, enqueue.cc:2590), and matches the k-th send
// of a pair of ranks with the k-th receive.
func expand(n int, calls []Call) (*mail, error) {
	m := &mail{n: n, left: make([]int, n)}
	m.sends, m.recvs = make([]queues, n), make([]queues, n)
	add := func(list *[]int32, i int) { *list = append(*list, int32(i)) }
	// halves are receives, until they meet their sends.
	halves := []plan.Message{}
	send := func(i int, src, dst int32, off units.Bytes) {
		add(m.sends[src].of(dst, n), len(m.messages))
		c := &calls[i]
		m.messages = append(m.messages, plan.Message{Src: src, Dst: dst, Bytes: c.Bytes(), SrcOff: off,
			SrcTask: int32(i)})
		m.copies = append(m.copies, src == dst && c.InPlace)
	}
	recv := func(i int, src, dst int32, off units.Bytes) {
		add(m.recvs[dst].of(src, n), len(halves))
		halves = append(halves, plan.Message{Src: src, Dst: dst, Bytes: calls[i].Bytes(), DstOff: off,
			DstTask: int32(i)})
	}
	for i := range calls {
		calls[i].messages(int32(n), func(src, dst int32, off units.Bytes) { send(i, src, dst, off) },
			func(src, dst int32, off units.Bytes) { recv(i, src, dst, off) })
	}
	return m, m.match(calls, halves)
}

// messages calls send and recv for the sends and receives of a call, in the order in which each rank issues
// them.
func (c *Call) messages(n int32, send, recv func(src, dst int32, off units.Bytes)) {
	if !c.p2p() || c.Count == 0 && c.Func.Valid() && c.Func != coll.SendRecv {
		return
	}
	at := func(r int32) units.Bytes { return units.Bytes(r) * c.Bytes() }
	switch c.Func {
	case coll.Send:
		send(c.Rank, c.Peer, 0)
	case coll.Recv:
		recv(c.Peer, c.Rank, 0)
	default:
		for r := range n {
			switch c.Func {
			case coll.SendRecv:
				send(r, (r+1)%n, 0)
				recv((r+n-1)%n, r, 0)
			case coll.AllToAll:
				for p := range n {
					if !c.Same {
						send(r, p, at(p))
					} else {
						send(r, p, 0)
					}
					recv(p, r, at(p))
				}
			case coll.Gather:
				send(r, c.Root, 0)
				recv(r, c.Root, at(r))
			case coll.Scatter:
				send(c.Root, r, at(r))
				recv(c.Root, r, 0)
			}
		}
	}
}

// UnmatchedError reports that a rank sends data that the other does not receive in the same group, or the
// reverse. NCCL would wait, forever or until another group has the other half.
type UnmatchedError struct {
	Src, Dst     int32
	Sends, Recvs int // numbers of both
}

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("rank %d sends %d messages to rank %d, which receives %d: in a group planned by "+
		"itself each send needs its receive", e.Src, e.Sends, e.Dst, e.Recvs)
}

// match joins each send with its receive. Error: *UnmatchedError, or a *CallError if their sizes differ.
func (m *mail) match(calls []Call, halves []plan.Message) error {
	return m.pairs(func(src, dst int32) error {
		s, r := *m.sends[src].of(dst, m.n), *m.recvs[dst].of(src, m.n)
		if len(s) != len(r) {
			return &UnmatchedError{src, dst, len(s), len(r)}
		}
		for k := range s {
			out, in := &m.messages[s[k]], &halves[r[k]]
			if out.Bytes != in.Bytes {
				return badCall(int(in.DstTask),
					"rank %d receives %d bytes of rank %d, which sends %d (call %d)", dst, in.Bytes, src,
					out.Bytes, out.SrcTask)
			}
			out.DstOff, out.DstTask = in.DstOff, in.DstTask
			r[k] = s[k]
		}
		m.left[src] += len(s)
		m.left[dst] += len(r)
		return nil
	})
}

// sweep is the position of a rank in its schedule: the round, and the number of passes over the rounds.
type sweep struct{ round, epoch int }

// p2p puts the sends and receives of a rank into a kernel, until it is full (scheduleP2pTasksToPlan,
// enqueue.cc:1039). batches are the kernel's so far.
func (l *layout) p2p(m *mail, sizer *channels.Sizer, rank int32, batches *workBatches,
	at *sweep) []plan.Exchange {
	var out []plan.Exchange
	rules := &l.c.Layout.Rules.Plan
	first := make([]int, len(batches.open)) // by channel: number of send/recv batches
	if !rules.RoundsResume {
		at.round = 0
	}
	sends, recvs, list := &m.sends[rank], &m.recvs[rank], m.rounds(sizer, rank)
	for m.left[rank] > 0 {
		for _, round := range list {
			if round < at.round {
				continue
			}
			at.round = round
			to, from := sizer.Peers(rank, round)
			send, recv := sends.first(to), recvs.first(from)
			if send < 0 && recv < 0 {
				continue
			}
			if to != rank || !m.copies[send] { // in place, a rank sends itself nothing
				if !l.budget.fits(batches.n+sizer.ChMax, batches.bytes+p2pBytes) {
					return out
				}
				x := plan.Exchange{Round: int32(at.round), Send: send, Recv: recv}
				for part := range max(parts(sizer, m.messages, send, at.round), parts(sizer, m.messages, recv,
					at.round)) {
					ch := sizer.Channel(rank, to, at.round, part)
					epoch := 0
					if rules.EpochBatches {
						epoch = at.epoch
					}
					most := sizer.Most(m.bytes(send), m.bytes(recv))
					if batches.addP2P(int(ch), at.round, epoch, most, rules.BatchByRound) {
						first[ch]++
					}
					x.Batch = append(x.Batch, int32(first[ch]-1))
				}
				batches.bytes += p2pBytes
				out = append(out, x)
			}
			if send >= 0 {
				sends.drop(to)
				m.left[rank]--
			}
			if recv >= 0 {
				recvs.drop(from)
				m.left[rank]--
			}
		}
		at.round, at.epoch = 0, at.epoch+1
	}
	return out
}

func head(q []int32) int32 {
	if len(q) == 0 {
		return -1
	}
	return q[0]
}

// bytes returns the size of a message; -1 for none.
func (m *mail) bytes(i int32) int64 {
	if i < 0 {
		return -1
	}
	return int64(m.messages[i].Bytes)
}

// parts returns the number of channels of a message; 0 for none.
func parts(s *channels.Sizer, list []plan.Message, i int32, round int) int {
	if i < 0 {
		return 0
	}
	t := s.Message(&list[i], nil, round, false)
	return t.Parts
}
