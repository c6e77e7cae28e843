package sim

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	simnet "github.com/simccl/simccl/sim/net"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// spine is a tree plan reduced to its longest path: the nodes from the root of
// the first channel's tree down to its deepest leaf, on that channel alone.
// The nodes beside the path are taken to keep pace with the one on it, and
// every other channel to take its fixed part of each link. Unlike a fold this
// is not exact: it leaves out that other channels idle at times, and that the
// two trees of NCCL meet in the nodes at different heights.
type spine struct {
	nodes []int32         // from the root down
	on    map[int32]bool  // the same as a set
	ids   map[int32]int32 // connection of the plan → of the engine
	share map[lane]float64
	load  map[int32]int32 // rank → network messages on all channels for one on the first
}

// lane is a directed link of one node.
type lane struct {
	node int32
	link topo.LinkID
}

// spineOf returns the path of a tree plan, nil where the plan is no tree
// between nodes.
func spineOf(p *plan.Plan) *spine {
	c := p.Comm
	if (p.Req.Algo != coll.Tree && p.Req.Algo != coll.NVLSTree) || c.NNodes < 2 || p.Req.Count == 0 {
		return nil
	}
	parent := nodeTree(p)
	height := make([]int32, c.NNodes)
	depth := make([]int32, c.NNodes)
	order := make([]int32, 0, c.NNodes)
	kids := make([][]int32, c.NNodes)
	root := int32(-1)
	for n, up := range parent {
		if up < 0 {
			root = int32(n)
		} else {
			kids[up] = append(kids[up], int32(n))
		}
	}
	if root < 0 {
		return nil
	}
	order = append(order, root)
	for i := 0; i < len(order); i++ {
		for _, k := range kids[order[i]] {
			depth[k] = depth[order[i]] + 1
			order = append(order, k)
		}
	}
	if len(order) != c.NNodes {
		return nil
	}
	for _, n := range slices.Backward(order) {
		for _, k := range kids[n] {
			height[n] = max(height[n], height[k]+1)
		}
	}
	s := &spine{on: map[int32]bool{}, ids: map[int32]int32{}, share: map[lane]float64{}, load: map[int32]int32{}}
	for n := root; ; {
		s.nodes = append(s.nodes, n)
		s.on[n] = true
		if len(kids[n]) == 0 {
			return s
		}
		next := kids[n][0]
		for _, k := range kids[n] {
			if height[k] > height[next] {
				next = k
			}
		}
		n = next
	}
}

// nodeTree returns every node's parent node in the first channel's tree, -1 at
// the root.
func nodeTree(p *plan.Plan) []int32 {
	c := p.Comm
	parent := make([]int32, c.NNodes)
	for i := range parent {
		parent[i] = -1
	}
	up := func(r int32) int32 { return c.Channels[p.Split.ChannelLo].Tree[r].Up }
	if p.Req.Algo == coll.NVLSTree {
		up = func(r int32) int32 { return c.NVLS[p.Split.ChannelLo].TreeUp[r] }
	}
	for r := range int32(c.NRanks) {
		if u := up(r); u >= 0 && c.NodeOf[u] != c.NodeOf[r] {
			parent[c.NodeOf[r]] = c.NodeOf[u]
		}
	}
	return parent
}

// layReduced lays out the path.
func (e *engine) layReduced(w *wiring, s *spine) error {
	lo := int32(e.plan.Split.ChannelLo)
	if err := e.measure(w, s, lo); err != nil {
		return err
	}
	w.share = s.share
	for _, node := range s.nodes {
		for _, rank := range e.plan.Comm.NodeRanks[node] {
			d := device{first: int32(len(e.sms))}
			for _, pr := range e.plan.Programs(rank) {
				if pr.Channel != lo {
					continue
				}
				if d.n == 0 {
					e.sms = append(e.sms, multiprocessor{first: int32(len(e.groups))})
					d.n = 1
				}
				e.sms[len(e.sms)-1].n++
				e.gap = max(e.gap, units.FromMicros(e.class.KernelGap[pr.Proto]))
				e.groups = append(e.groups, newGroup(e, &pr, int32(len(e.devs)), int32(len(e.sms)-1)))
			}
			e.devs = append(e.devs, d)
		}
	}
	e.spine = s
	return e.reducedConns(w, s)
}

// each gives every connection that a program's ops use, once an op of its kind.
func (e *engine) each(pr *plan.Program, do func(op *plan.Op) error) error {
	var cur plan.Cursor
	var op plan.Op
	e.plan.OpenInto(&cur, pr)
	// A tree's op has its connections from the first on; scattering and
	// gathering turn over the heads.
	n := int32(1)
	if pr.Role == plan.RoleScatter || pr.Role == plan.RoleGather {
		n = int32(len(e.plan.Comm.NVLS[pr.Channel].Heads))
	}
	for cur.Next(&op) && op.Seq < n {
		if err := do(&op); err != nil {
			return err
		}
	}
	return nil
}

// tally counts crossings of links: by all channels and by the first.
type tally struct{ all, first int32 }

// measure finds out which part of each link the first channel may use, and how
// many network messages each proxy thread has on all channels.
func (e *engine) measure(w *wiring, s *spine, lo int32) error {
	sw, err := newWiring(e.plan.Comm, w.systems, e.class, new(simnet.Fluid))
	if err != nil {
		return err
	}
	sn := newNetwork(e, sw)
	count := map[lane]*tally{}
	note := func(ch int32) {
		for _, u := range sw.uses {
			l := sw.lanes[u.Link]
			if !s.on[l.node] {
				continue
			}
			if count[l] == nil {
				count[l] = new(tally)
			}
			count[l].all += u.Count
			if ch == lo {
				count[l].first += u.Count
			}
		}
		sw.uses = sw.uses[:0]
	}
	messages := map[int32]*tally{}
	seen := map[int32]bool{}
	for _, node := range s.nodes {
		for _, rank := range e.plan.Comm.NodeRanks[node] {
			for _, pr := range e.plan.Programs(rank) {
				err := e.each(&pr, func(op *plan.Op) error {
					return e.measureOp(sw, sn, op, seen, messages, lo, note)
				})
				if err != nil {
					return err
				}
			}
		}
	}
	for l, t := range count { //lint:sorted fills a map
		if t.first > 0 && t.all > t.first {
			s.share[l] = float64(t.first) / float64(t.all)
		}
	}
	for r, t := range messages { //lint:sorted fills a map
		s.load[r] = max(1, t.all/max(1, t.first))
	}
	return nil
}

// measureOp counts the crossings and messages of one op.
func (e *engine) measureOp(sw *wiring, sn *network, op *plan.Op, seen map[int32]bool, messages map[int32]*tally, lo int32, note func(int32)) error {
	sw.uses = sw.uses[:0]
	for _, ids := range [][]int32{op.From, op.To} {
		for _, id := range ids {
			if seen[id] {
				continue
			}
			c := e.plan.Conn(id)
			if c.Kind == connect.NVLSRoute {
				continue // counted with the head's op, below
			}
			seen[id] = true
			if err := sw.stores(&c); err != nil {
				return err
			}
			note(op.Channel)
			if c.Route.Transport != connect.NET {
				continue
			}
			if messages[c.Route.SrcProxy] == nil {
				messages[c.Route.SrcProxy] = new(tally)
			}
			t := messages[c.Route.SrcProxy]
			t.all++
			if op.Channel == lo {
				t.first++
			}
			if err := sn.gather(&c); err != nil {
				return err
			}
			note(op.Channel)
		}
	}
	if e.plan.Req.Algo == coll.NVLSTree && len(op.From)+len(op.To) > 1 {
		if err := sw.throughSwitch(op, e.plan.Conn); err != nil {
			return err
		}
		note(op.Channel)
	}
	return nil
}

// inside reports whether both ends of a connection are on the path.
func (s *spine) inside(c *connect.Comm, pc *plan.Conn) bool {
	return pc.Src >= 0 && pc.Dst >= 0 && s.on[c.NodeOf[pc.Src]] && s.on[c.NodeOf[pc.Dst]]
}

// reducedConns numbers and declares the connections between nodes of the path.
func (e *engine) reducedConns(w *wiring, s *spine) error {
	var ids []int32
	for gi := range e.groups {
		err := e.each(&e.groups[gi].pr, func(op *plan.Op) error {
			for _, id := range slices.Concat(op.From, op.To) {
				pc := e.plan.Conn(id)
				if s.inside(e.plan.Comm, &pc) {
					ids = append(ids, id)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	e.conns = make([]conn, len(ids))
	for i, id := range ids {
		s.ids[id] = int32(i)
		e.conns[i] = conn{snd: -1, rcv: -1, net: -1}
	}
	for gi := range e.groups {
		pr := &e.groups[gi].pr
		err := e.each(pr, func(op *plan.Op) error { return e.joinReduced(w, s, int32(gi), op) })
		if err != nil {
			return err
		}
	}
	return e.layJoint(w)
}

// joinReduced declares the connections of one op.
func (e *engine) joinReduced(w *wiring, s *spine, gi int32, op *plan.Op) error {
	pr := &e.groups[gi].pr
	for _, id := range op.To {
		i, ok := s.ids[id]
		if !ok || e.conns[i].snd >= 0 {
			continue
		}
		pc := e.plan.Conn(id)
		r, err := w.between(&pc)
		if err != nil {
			return err
		}
		c := &e.conns[i]
		c.snd, c.route, c.depth = gi, r, plan.FIFOSteps/int64(max(1, pr.SliceSteps))
		c.far = e.farOf(&pc)
		if c.net, err = e.nw.connect(&pc, i, pr); err != nil {
			return err
		}
		if c.net >= 0 {
			e.nw.conns[c.net].load = max(1, s.load[pc.Route.SrcProxy])
		}
	}
	for _, id := range op.From {
		if i, ok := s.ids[id]; ok {
			e.conns[i].rcv = gi
		}
	}
	return nil
}

// ends renumbers an op's connections into buf and leaves out those that lead
// off the path.
func (s *spine) ends(buf, ids []int32) []int32 {
	buf = buf[:0]
	for _, id := range ids {
		if i, ok := s.ids[id]; ok {
			buf = append(buf, i)
		}
	}
	return buf
}
