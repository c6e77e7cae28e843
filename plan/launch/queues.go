package launch

import (
	"slices"

	"github.com/simccl/simccl/plan/internal/channels"
)

// queues holds a rank's messages to, or from, its peers, in program order. Most ranks of a large communicator
// have few peers, so up to fewPeers peers are kept in a list.
type queues struct {
	few []peerQueue
	all [][]int32 // by peer, for more than fewPeers peers
}

// peerQueue holds the indexes of the messages of one peer.
type peerQueue struct {
	peer int32
	list []int32
}

const fewPeers = 16

// of returns the messages of a peer among n ranks; the caller may append to and remove from the result.
func (q *queues) of(peer int32, n int) *[]int32 {
	if q.all != nil {
		return &q.all[peer]
	}
	for i := range q.few {
		if q.few[i].peer == peer {
			return &q.few[i].list
		}
	}
	if len(q.few) < fewPeers {
		q.few = append(q.few, peerQueue{peer: peer})
		return &q.few[len(q.few)-1].list
	}
	q.all = make([][]int32, n)
	for i := range q.few {
		q.all[q.few[i].peer] = q.few[i].list
	}
	q.few = nil
	return &q.all[peer]
}

// first returns the next message of a peer; -1: none.
func (q *queues) first(peer int32) int32 {
	if q.all != nil {
		return head(q.all[peer])
	}
	for i := range q.few {
		if q.few[i].peer == peer {
			return head(q.few[i].list)
		}
	}
	return -1
}

// drop removes the next message of a peer, which must exist.
func (q *queues) drop(peer int32) {
	list := q.of(peer, 0)
	*list = (*list)[1:]
}

// appendPeers appends the peers that have messages.
func (q *queues) appendPeers(dst []int32) []int32 {
	for p := range q.all {
		if len(q.all[p]) > 0 {
			dst = append(dst, int32(p))
		}
	}
	for i := range q.few {
		if len(q.few[i].list) > 0 {
			dst = append(dst, q.few[i].peer)
		}
	}
	return dst
}

// rounds lists, in order, the rounds in which a rank sends or receives.
func (m *mail) rounds(s *channels.Sizer, rank int32) []int {
	var list []int
	for _, to := range m.sends[rank].appendPeers(nil) {
		list = append(list, s.Of(rank, to))
	}
	for _, from := range m.recvs[rank].appendPeers(nil) {
		list = append(list, s.Of(from, rank))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// pairs calls do for every pair of ranks between which there are sends or receives, in order, until do
// returns an error.
func (m *mail) pairs(do func(src, dst int32) error) error {
	senders := make([][]int32, m.n) // by src, the ranks that receive of it
	var from []int32
	for dst := range m.recvs {
		from = m.recvs[dst].appendPeers(from[:0])
		for _, src := range from {
			senders[src] = append(senders[src], int32(dst))
		}
	}
	for src := range m.sends {
		peers := m.sends[src].appendPeers(senders[src])
		slices.Sort(peers)
		for _, dst := range slices.Compact(peers) {
			if err := do(int32(src), dst); err != nil {
				return err
			}
		}
	}
	return nil
}
