package symk

import (
	"errors"
	"math"
	"slices"

	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/topo"
)

// Peer times a kernel of serving. Phases that a meeting of all ranks begins come one after
// the other, each with its loads' round trips and its bytes; kernels that move tokens stream,
// so that the busier of SMs and links bounds them. Errors as Kernel.
func (m *Machine) Peer(p *peer.Plan) (Time, error) {
	w := m.newTraffic()
	for i := range p.Phases {
		if err := m.moves(w, p, p.Phases[i].Moves); err != nil {
			return Time{}, err
		}
	}
	var t Time
	var err error
	switch {
	case p.Tokens != nil:
		t.Gap, t.Busy = m.tokens(w, p)
	case p.Blocks > 0:
		err = m.shots(p, &t)
	default:
		t.Gap, t.Busy = m.posted(w, p)
	}
	t.Links = w.loads()
	return t, err
}

// shots are the phases of an all_reduce over peers' memory.
func (m *Machine) shots(p *peer.Plan, t *Time) error {
	c, phases := &m.Class.Peer, p.Phases
	t.Gap = c.Gap + c.Flag
	if !p.Meet { // it pushes: data and flags are one, and are summed up as they come
		w := m.newTraffic()
		if err := m.moves(w, p, phases[0].Moves); err != nil {
			return err
		}
		w.crowdStore, phases = c.Crowd, phases[2:]
		t.Busy = w.fullest() / c.Share
	}
	for i := range phases {
		ph := &phases[i]
		if ph.Meet {
			t.Gap += c.Flag
		}
		if local(ph) {
			gap, busy := m.copied(p, ph)
			t.Gap, t.Busy = t.Gap+gap, t.Busy+busy
			continue
		}
		w := m.newTraffic()
		if w.crowdLoad = c.Crowd; ph.Serial {
			w.crowdLoad = 0
		}
		if err := m.moves(w, p, ph.Moves); err != nil {
			return err
		}
		chain, links := m.chain(p, ph), w.fullest()/c.Share
		switch {
		case ph.Moves[0].Way == peer.Multicast: // all passes but the first hide behind the bytes
			t.Busy += c.Multimem + math.Max(chain-c.Multimem, links*c.Share/c.MultimemShare)
		case ph.Serial: // threads wait for different peers at a time
			t.Busy += math.Max(chain, links)
		default:
			t.Busy += chain + links
		}
	}
	t.Busy *= max(1, m.Slow)
	return nil
}

// local reports whether a phase moves data within ranks alone.
func local(ph *peer.Phase) bool {
	return !slices.ContainsFunc(ph.Moves, func(mv peer.Move) bool {
		return slices.ContainsFunc(mv.Sources, func(s peer.Place) bool { return s.Rank != mv.To.Rank })
	})
}

// copied is the time in which each rank copies its input: the kernel's threads 16 bytes at a time, whose
// loads from memory take as long as those from a peer, or a kernel of its own before it at the memory's rate.
func (m *Machine) copied(p *peer.Plan, ph *peer.Phase) (gap, busy float64) {
	bytes := make([]int64, p.Ranks)
	for i := range ph.Moves {
		bytes[ph.Moves[i].By] += p.Parts[ph.Moves[i].To.Part].Bytes
	}
	most, c := slices.Max(bytes), &m.Class.Peer
	if ph.Apart {
		return m.Class.One.CopyGap, 2 * float64(most) / (m.Class.One.MemoryRate * 1e3)
	}
	turn := int64(p.Blocks) * int64(p.Threads) * 16
	return 0, float64((most+turn-1)/turn) * c.Load
}

// chain is what a thread waits for its loads, one pass after the other: each of all threads
// loads 16 bytes of a rank's part from all peers at a time, or from one after the other.
func (m *Machine) chain(p *peer.Plan, ph *peer.Phase) float64 {
	c, peers := &m.Class.Peer, float64(p.Ranks-1)
	bytes := int64(0)
	for i := range p.Parts {
		bytes = max(bytes, p.Parts[i].Bytes)
	}
	turn := int64(p.Blocks) * int64(p.Threads) * 16
	passes := float64((bytes + turn - 1) / turn)
	if ph.Moves[0].Way == peer.Multicast {
		return passes * c.Multimem
	}
	if ph.Serial {
		return passes * peers * c.Serial
	}
	return passes * (c.Load + float64(c.More*(peers-1)))
}

// tokens is the time of a kernel that dispatches tokens or combines them.
func (m *Machine) tokens(w *traffic, p *peer.Plan) (gap, busy float64) {
	c, t := &m.Class.Peer, p.Tokens
	if p.Kernel == peer.OneSided {
		return m.oneSided(w, p)
	}
	cost := &c.Dispatch
	switch {
	case t.Combine && t.LowLatency:
		cost = &c.LowCombine
	case t.LowLatency:
		cost = &c.LowDispatch
	case t.Combine:
		cost = &c.Combine
	}
	gap = cost.Gap + float64(cost.Group*float64(t.Groups))
	if t.Remote && (t.LowLatency || t.Combine) { // a normal dispatch has met all ranks before it sends
		gap += c.Cross
	}
	share := cost.Share
	if p.Kernel == peer.HybridEP || p.Kernel == peer.DeepEPV2 {
		share = 1 // by the tensor memory accelerator, not by loads and stores of threads
	}
	links := math.Max(w.fullestOf(false)/share, w.fullestOf(true))
	sms := cost.SMTime(t.Count, t.Copies, t.Bytes, t.Values, p.Blocks)
	switch {
	case t.LowLatency:
		return gap, sms*max(1, m.Slow) + links
	case p.Kernel == peer.DeepEPV2:
		sms = m.elastic(t) / float64(p.Blocks)
	case p.Kernel == peer.HybridEP: // each token that a node gets is looked at for each of its ranks
		seen := float64(p.Ranks)
		if t.Remote {
			seen *= t.Crossing / float64(m.Comm.NNodes)
		}
		sms = float64(t.Count) / float64(p.Blocks) * (c.HybridToken + float64(c.HybridRank*seen))
	case t.Remote: // the same SMs send, and pass on what comes from other nodes
		sms += cost.SMTime(t.Count, t.Crossing, t.Bytes, t.Values, p.Blocks)
		sms *= c.Relay * max(1, m.Slow)
		// the SMs' first chunk, or the links' last, hides behind nothing
		return gap, math.Max(sms, links) + math.Min(sms, links)/math.Max(1, t.Chunks)
	}
	return gap, norm4(sms*max(1, m.Slow), links)
}

// oneSided is the time of TensorRT-LLM's alltoall: all SMs store tokens, and links carry them meanwhile; a
// combine's loads are bound by links alone.
func (m *Machine) oneSided(w *traffic, p *peer.Plan) (gap, busy float64) {
	c, t := &m.Class.Peer.OneSided, p.Tokens
	w.crowdLoad, w.crowdStore = c.Crowd, c.Crowd
	meet, links := float64(c.Meet*math.Log2(float64(p.Ranks))), w.fullest()/c.Share
	if t.Combine {
		return c.Combine + 2*meet, links
	}
	return c.Dispatch + meet, math.Max(links, float64(t.Count)*c.Token/float64(p.Blocks)*max(1, m.Slow))
}

// elastic is the time in which one SM reads and writes a rank's tokens in DeepEP 2: read once and by the rank
// that passes them on; written into the buffer that is sent, into the own node's and to each rank.
func (m *Machine) elastic(t *peer.Tokens) float64 {
	reads, writes := 1+t.Crossing, t.Copies
	if t.Remote {
		writes += 1 + t.Crossing/float64(m.Comm.NNodes)
	}
	bytes := float64(t.Count * t.Bytes)
	return bytes * math.Max(reads/m.Class.Peer.ElasticRead, writes/m.Class.Peer.ElasticWrite) * 1e-3
}

// norm4 is the time of two things of which the longer hides the other but where both are
// about as long.
func norm4(a, b float64) float64 { return math.Pow(math.Pow(a, 4)+math.Pow(b, 4), 0.25) }

// posted is the time of writes or reads that hosts post, block by block: as long as their bytes, or as their
// posting, and the wire, which a read's request takes before its bytes.
func (m *Machine) posted(w *traffic, p *peer.Plan) (gap, busy float64) {
	c := &m.Class.Peer
	posts, ways := make([]int64, p.Ranks), 1.0
	for i := range p.Phases {
		for _, mv := range p.Phases[i].Moves {
			posts[mv.By] += p.Parts[mv.To.Part].Items
			if mv.Way == peer.Read {
				ways = 2
			}
		}
	}
	return c.Request + ways*m.Class.Net.Wire, math.Max(w.fullest(), float64(slices.Max(posts))*c.Post)
}

// moves puts the bytes of moves on the links.
func (m *Machine) moves(w *traffic, p *peer.Plan, list []peer.Move) error {
	for i := range list {
		mv := &list[i]
		if mv.Way == peer.Multicast {
			if err := w.multicast(mv, float64(p.Parts[mv.To.Part].Bytes)); err != nil {
				return err
			}
			continue
		}
		for k, s := range mv.Sources {
			if s.Rank == mv.To.Rank || k > 0 && mv.Sources[k-1].Rank == s.Rank { // added up first
				continue
			}
			bytes := float64(p.Parts[mv.To.Part].Bytes)
			var err error
			switch {
			case (mv.Way == peer.Write || mv.Way == peer.Read) &&
				m.Comm.NodeOf[s.Rank] != m.Comm.NodeOf[mv.To.Rank]:
				err = w.across(s.Rank, mv.To.Rank, bytes)
			case mv.Way == peer.Load || mv.Way == peer.Read:
				err = w.between(s.Rank, mv.To.Rank, bytes, 0)
			default:
				err = w.between(s.Rank, mv.To.Rank, 0, bytes)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// multicast puts bytes on the way from all sources to the switch and, added up, to the rank that loads them;
// then from it to the switch and to all destinations.
func (w *traffic) multicast(mv *peer.Move, bytes float64) error {
	err := w.throughSwitch(mv.By, false, bytes)
	for _, s := range mv.Sources {
		err = errors.Join(err, w.throughSwitch(s.Rank, true, bytes))
	}
	if len(mv.Also) > 0 {
		err = errors.Join(err, w.throughSwitch(mv.By, true, bytes), w.throughSwitch(mv.To.Rank, false, bytes))
	}
	for _, d := range mv.Also {
		err = errors.Join(err, w.throughSwitch(d.Rank, false, bytes))
	}
	return err
}

// across adds bytes to the load of the links between GPUs of two nodes: at each end an equal part through
// each of the nets nearest to the GPU. It fails where a GPU reaches no net.
func (w *traffic) across(src, dst int32, bytes float64) error {
	for _, end := range []struct {
		rank int32
		out  bool
	}{{src, true}, {dst, false}} {
		node, gpu := w.table.GPU(end.rank)
		s := w.table.Systems[node]
		nets := s.LocalNets(s.Index(gpu))
		if len(nets) == 0 {
			return &route.Error{Node: int(node), From: w.table.Name(node, gpu), To: "a NIC"}
		}
		for _, n := range nets {
			net := s.Of(topo.NET)[n]
			w.table.Uses = w.table.Uses[:0]
			w.table.ThroughRoot(node, gpu, net, end.out)
			from, to := gpu, net
			if !end.out {
				from, to = net, gpu
			}
			if err := w.table.Walk(node, from, to); err != nil {
				return err
			}
			w.each(func(l *load, times float64) { l.wire += bytes * times / float64(len(nets)) })
		}
	}
	return nil
}
