package launch

import (
	"fmt"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
)

// fifoWorks is the largest number of batches of a kernel in releases with pieces: half of the FIFO
// (NCCL_WORK_FIFO_DEPTH, init.cc:39, enqueue.cc:1252 of v2.21.5).
const fifoWorks = 64 << 10 / 2

// pieces puts the sends and receives of a rank into a kernel in releases where pieces have places of their
// own: each exchange is a send or a receive (enqueue.cc:882 of v2.21.5). Error: *plan.UnsupportedError for a
// group with more batches than a kernel holds.
func (l *layout) pieces(m *mail, sizer *channels.Sizer, rank int32, mode Mode) ([]plan.Exchange, int, error) {
	var out []plan.Exchange
	at := channels.NewPlaces(l.c.Layout.P2PChannels)
	list := m.rounds(sizer, rank)
	for m.left[rank] > 0 {
		for _, round := range list {
			to, from := sizer.Peers(rank, round)
			send, recv := plan.Exchange{Round: int32(round), Send: -1, Recv: -1},
				plan.Exchange{Round: int32(round), Send: -1, Recv: -1}
			if to >= 0 {
				send.Send = m.take(&m.sends[rank], rank, to)
			}
			if from >= 0 {
				recv.Recv = m.take(&m.recvs[rank], rank, from)
			}
			sends, recvs := parts(sizer, m.messages, send.Send, round), parts(sizer, m.messages, recv.Recv,
				round)
			for part := range max(sends, recvs) {
				at.Begin(round)
				if part < recvs {
					recv.Batch = append(recv.Batch, at.Add(sizer.Channel(from, rank, round, part), from,
						false))
				}
				if part < sends {
					send.Batch = append(send.Batch, at.Add(sizer.Channel(rank, to, round, part), to, true))
				}
			}
			if send.Send >= 0 && to == rank && m.copies[send.Send] { // in place, no data is copied
				continue
			}
			for _, x := range []plan.Exchange{recv, send} {
				if len(x.Batch) > 0 {
					out = append(out, x)
				}
			}
		}
	}
	if mode != Captured && at.Batches > fifoWorks {
		return nil, 0, &plan.UnsupportedError{
			What: fmt.Sprintf("a group in which rank %d has %d batches of sends and receives", rank,
				at.Batches),
			Why: fmt.Sprintf("NCCL %s starts a further kernel after %d, which is not modelled; make "+
				"smaller groups", l.c.Layout.Rules.Version(), fifoWorks)}
	}
	return out, at.Batches, nil
}

// take removes and returns the first message between rank and peer in q; -1 if there is none.
func (m *mail) take(q *queues, rank, peer int32) int32 {
	i := q.first(peer)
	if i >= 0 {
		q.drop(peer)
		m.left[rank]--
	}
	return i
}
