package build

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/plan/internal/channels"
)

// pieces lists the works of a rank in releases where each send and receive piece has its own place in a batch
// (P2PPieces; enqueue.cc:882 of v2.21.5).
func (g *p2p) pieces(rank int32) []work {
	var list []work
	at := channels.NewPlaces(g.comm.P2PChannels)
	g.eachRound(rank, func(round int) {
		send, recv := g.transfers(rank, round)
		for part := range max(send.Parts, recv.Parts) {
			at.Begin(round)
			if recv.Bytes >= 0 && part < recv.Parts {
				w := g.half(rank, round, part, channels.Transfer{Bytes: -1}, recv)
				w.phase = at.Add(w.channel, recv.Peer, false)
				list = append(list, w)
			}
			if send.Bytes >= 0 && part < send.Parts {
				w := g.half(rank, round, part, send, channels.Transfer{Bytes: -1})
				w.phase = at.Add(w.channel, send.Peer, true)
				if send.Peer == rank {
					w.recv, w.idle = recv, g.req.InPlace
				}
				list = append(list, w)
			}
		}
	})
	return inPlaces(list)
}

// pieceWorks is pieces for the messages of a group, whose batches are given: each exchange is a send or a
// receive.
func (g *messages) pieceWorks(rank int32) []work {
	var list []work
	none := channels.Transfer{Bytes: -1}
	for i := range g.lists[rank] {
		x := &g.lists[rank][i]
		for part, batch := range x.Batch {
			w := work{part: part, phase: batch, send: none, recv: none, sendConn: -1, recvConn: -1}
			if x.Send >= 0 {
				m := &g.list[x.Send]
				w.send, w.sendConn = g.Message(m, g.fixed, int(x.Round), false), g.connOf(x.Send, part)
				if m.Src == m.Dst {
					w.recv = g.Message(m, g.fixed, int(x.Round), true)
				}
				w.channel = g.Channel(rank, m.Dst, int(x.Round), part)
			} else {
				m := &g.list[x.Recv]
				w.recv, w.recvConn, w.idle = g.Message(m, g.fixed, int(x.Round), true),
					g.connOf(x.Recv, part), m.Src == m.Dst
				w.channel = g.Channel(m.Src, rank, int(x.Round), part)
			}
			list = append(list, w)
		}
	}
	return inPlaces(list)
}

// half returns the work of a part of a send or of a receive. The receive of a rank that sends to itself moves
// no data.
func (g *p2p) half(rank int32, round, part int, send, recv channels.Transfer) work {
	w := work{part: part, send: send, recv: recv, sendConn: -1, recvConn: -1}
	if send.Bytes >= 0 {
		w.channel = g.Channel(rank, send.Peer, round, part)
		w.sendConn = g.connID(rank, send.Peer, part)
		return w
	}
	w.channel, w.idle = g.Channel(recv.Peer, rank, round, part), recv.Peer == rank
	w.recvConn = g.connID(recv.Peer, rank, part)
	return w
}

// inPlaces sorts works by channel and batch, drops batches without data, and renumbers the others and the
// works of each: receives get even indexes and sends odd ones.
func inPlaces(list []work) []work {
	slices.SortStableFunc(list, func(a, b work) int {
		return cmp.Or(cmp.Compare(a.channel, b.channel), cmp.Compare(a.phase, b.phase))
	})
	out := list[:0]
	phase := int32(0)
	for len(list) > 0 {
		first := list[0]
		n := slices.IndexFunc(list, func(w work) bool {
			return w.channel != first.channel || w.phase != first.phase
		})
		if n < 0 {
			n = len(list)
		}
		batch := list[:n]
		list = list[n:]
		if !slices.ContainsFunc(batch, func(w work) bool { return !w.idle }) {
			continue
		}
		if len(out) == 0 || out[len(out)-1].channel != first.channel {
			phase = -1
		}
		phase++
		var places [2]int32
		for _, w := range batch {
			kind := int32(0)
			if w.send.Bytes >= 0 {
				kind = 1
			}
			w.phase, w.index = phase, 2*places[kind]+kind
			places[kind]++
			out = append(out, w)
		}
	}
	return out
}

// pieceWarps returns the warps of a send and of a receive in a batch with n places. The places are rounded up
// to a power of two; each gets the largest power of two of the kernel's 640/32 warps with which all fit. A
// send gets one more if that is not a single warp (enqueue.cc:117 of v2.21.5).
func pieceWarps(n int) (send, recv int) {
	places, warps := 1, 1
	for places < n {
		places *= 2
	}
	for warps*places <= (640/32)/2 {
		warps *= 2
	}
	if warps >= 2 {
		return warps + 1, warps
	}
	return warps, warps
}
