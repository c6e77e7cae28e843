package check

import (
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Proofs keeps which shortened plans were proved: the sizes of a sweep repeat the same.
// The zero value is empty. It may be used by several goroutines at once.
type Proofs struct {
	mu   sync.Mutex
	done map[proofKey]bool
}

// proofKey is all by which the plans of a communicator differ.
type proofKey struct {
	comm     *connect.Layout
	fn       coll.Func
	count    int64
	typ      coll.DataType
	op       coll.RedOp
	root     int32
	peer     int32
	inPlace  bool
	algo     coll.Algorithm
	proto    coll.Protocol
	channels int
	warps    int
	slow     bool
	direct   bool
	misalign int64
	pairs    *coll.Pairs
	apart    int64
	way      string
	same     bool
	sums     [3]int
	settings [6]units.Opt[int64]
	split    plan.Split
}

func keyOf(p *plan.Plan) proofKey {
	r, s := &p.Req, &p.Req.Params
	return proofKey{comm: p.Comm, fn: r.Func, count: r.Count, typ: r.Type, op: r.Op, root: r.Root,
		peer: r.Peer, inPlace: r.InPlace, algo: r.Algo, proto: r.Proto,
		channels: r.Channels, warps: r.Warps, slow: r.SlowNVLS, direct: r.Direct, apart: r.Apart,
		way: r.Way, same: r.Same, sums: [3]int{map[bool]int{true: 1}[r.Sums], r.SumBlocks, r.SumThreads},
		misalign: r.Misalign, pairs: r.Pairs,
		settings: [6]units.Opt[int64]{s.P2PLLThreshold, s.ChunkSize, s.P2PGroupSize, s.NVLSTreeMaxChunk,
			s.NetSharedBuffers, s.AllocP2PNetLL}, split: p.Split}
}

// short proves what fewIterations made of a plan, unless it was proved already. Of the
// plan itself, which is not always NCCL's, nothing is kept.
func (s *Proofs) short(p, short *plan.Plan) error {
	if short == p {
		return Plan(p)
	}
	key := keyOf(short)
	s.mu.Lock()
	proved := s.done[key]
	s.mu.Unlock()
	if proved {
		return nil
	}
	err := Plan(short)
	if err == nil {
		s.mu.Lock()
		if s.done == nil {
			s.done = map[proofKey]bool{}
		}
		s.done[key] = true
		s.mu.Unlock()
	}
	return err
}

// wholeOps are proved one by one, whether they repeat or not.
const wholeOps = 3e4

// wholeTurns are proved one by one of a ring, whose ops take longer: their sums are many.
const wholeTurns = 4e3

// whole proves a plan of so many ops, not too many. Of many ops that repeat, all are compared
// with those that are proved: iterations with one of them, the ranks of a ring with the first,
// and nodes of a tree with one of their shape. Plan says what is at fault where they do not repeat.
func (s *Proofs) whole(p *plan.Plan, ops float64) error {
	if p.Members() == nil && p.Req.Cut == nil && ops > wholeOps && rootedTransfers(p) {
		return nil
	}
	if p.Members() != nil || p.Req.Cut != nil || p.Req.Func.IsP2P() || p.Split.Striped ||
		len(p.NetGroups()) > 0 {
		return Plan(p)
	}
	if p.Turns() > 0 {
		if ops > wholeTurns && p.Distinct() == nil && ofRing(p, allRanks(p)) == nil {
			return nil
		}
		return Plan(p)
	}
	if isChain(p) && ops > wholeTurns && p.Distinct() == nil && ofChain(p, allRanks(p)) == nil {
		return nil
	}
	if ops <= wholeOps {
		return Plan(p)
	}
	short, err := fewIterations(p, allRanks(p))
	if err != nil {
		return Plan(p)
	}
	if ok, err := ofTree(short); ok && err == nil {
		return nil
	}
	return s.short(p, short)
}

func allRanks(p *plan.Plan) []int32 {
	all := make([]int32, p.Comm.NRanks)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
