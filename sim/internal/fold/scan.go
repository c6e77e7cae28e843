package fold

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/internal/variates"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// scan proves a symmetry for the given plan. It walks over all real traffic of
// the nodes whose links are simulated, gives each link and each proxy thread a
// fingerprint of what crosses it, and takes those with equal fingerprints as one
// class. The symmetry holds where all flows of a kind cross the same classes
// equally often.
//
// Example: a ring over two nodes of two GPUs, folded to one node. Two of the kinds
// are the stores of GPU 0 into GPU 1's FIFO and the messages of GPU 1. The links
// from GPU 0 to the switch are crossed once by the first kind on either node, so
// they have one fingerprint and are one link of the quotient. If node 1 had a
// slower NIC, the two NICs would be of two classes, the messages of node 0 and 1
// would cross different ones, and the symmetry would not hold.
//
// Kinds of traffic are numbered: what kernels store into each connection of
// the engine, then its network messages, then what each group's ops with
// several peers do.
type scan struct {
	q        *Quotient
	e        *engine.Engine
	plan     *plan.Plan
	w        *route.Table
	nw       *host.Network
	flows    []flow
	uses     []wire.Use
	links    []variates.Multiset // of each real link: by which kinds it is crossed
	threads  []variates.Multiset // of each rank's proxy thread
	byThread []served
	joints   []bool  // by group: its ops have a route of their own
	holds    bool    // everything of a kind is equivalent so far
	ins      []int32 // of the current program
	outs     []int32
	conn     plan.Conn // that is walked over

	class []int32              // of each real link
	first []wire.LinkID        // class → its first link
	kinds [][]wire.Use         // kind → how many of its flows cross the first link of each class
	own   []int32              // kind → the representative's flow + 1, or any; 0 without
	proxy []int32              // rank → class of its proxy thread
	load  map[threadKind]int32 // kind, role, class of thread → messages
	later []units.Time         // by the engine's connection: what the network adds, nil without one
}

// flow is one real connection's or op's traffic.
type flow struct {
	kind, from, to int32 // its uses
	rep            bool  // of a representative
}

// threadKind is a proxy thread's part in the messages of a kind: as sender (role 0)
// or receiver (1).
type threadKind struct{ kind, role, thread int32 }

// served is a part of a thread's messages and its place in the thread's order.
type served struct {
	threadKind
	channel, id int32
}

// scan walks over the traffic and finds classes of links and threads. Unless near, it ends where the symmetry
// is found not to hold.
func (q *Quotient) scan(near bool) (*scan, error) {
	e, w := q.e, q.e.Net.Table
	sw := route.New(q.plan.Comm, w.Systems, e.Class, new(wire.Layout))
	sw.Home = q.home
	s := &scan{q: q, e: e, plan: q.plan, w: sw, holds: true, threads: make([]variates.Multiset,
		q.plan.Comm.NRanks)}
	// The network is that of the run but for the fabric: where ranks fold over one,
	// its cables are never saturated, and only their latency counts (cables.go).
	settings := e.Net.Settings
	settings.Fabric = nil
	s.nw = host.New(&host.Options{Class: e.Class, Table: sw, Queue: &e.Queue, Kernels: e, Plan: q.plan,
		Settings: settings, Folded: true})
	s.joints = make([]bool, len(e.Groups))
	s.flows = make([]flow, 0, len(e.Conns))
	if err := s.walk(near); err != nil || !s.holds && !near {
		return s, err
	}
	s.sortLinks()
	s.sortFlows()
	s.sortProxies()
	return s, nil
}

// walk notes the traffic of all nodes whose links are simulated.
func (s *scan) walk(near bool) error {
	q := s.q
	if q.rotated && int64(q.plan.Comm.NRanks)*int64(q.plan.Comm.MaxLocalRanks) > manyTurns && q.meets &&
		s.e.Slow == nil {
		return s.turns()
	}
	var progs []plan.Program
	for node, home := range q.home {
		if int(home) != node {
			continue
		}
		for _, rank := range s.plan.Comm.NodeRanks[node] {
			if err := s.e.Poll(); err != nil {
				return err
			}
			progs = s.plan.AppendPrograms(progs[:0], rank)
			for i := range progs {
				if err := s.program(&progs[i]); err != nil {
					return err
				}
			}
		}
		if node < layerNodes && host.Staggers(s.plan) {
			s.sortServed()
			for i := range s.byThread {
				s.holds = s.holds && s.inOrder(i)
			}
		}
		if !s.holds && !near {
			return nil
		}
	}
	return nil
}

// program walks over one program's traffic and compares it with its kind.
func (s *scan) program(pr *plan.Program) error {
	place := s.q.place(pr.Channel, pr.Rank)
	gi := s.q.first[place] + pr.Group
	g := &s.e.Groups[gi]
	rep := s.q.reps[place] == part{pr.Channel, pr.Rank}
	s.holds = s.holds && equalPrograms(&g.Program, pr) &&
		(s.e.Slow == nil || s.e.Slow[pr.Rank] == s.e.Slow[g.Program.Rank])
	s.ins, s.outs = s.ins[:0], s.outs[:0]
	err := s.q.each(pr, func(op *plan.Op) error {
		for _, id := range op.To {
			if slices.Contains(s.outs, id) {
				continue
			}
			s.outs = append(s.outs, id)
			if err := s.sends(gi, id, op, rep); err != nil {
				return err
			}
		}
		for _, id := range op.From {
			if slices.Contains(s.ins, id) {
				continue
			}
			s.ins = append(s.ins, id)
			if err := s.receives(gi, id, rep); err != nil {
				return err
			}
		}
		if op.Seq == 0 {
			return s.joint(gi, op, rep)
		}
		return nil
	})
	s.holds = s.holds && len(s.ins) == len(g.Folded().Ins) && len(s.outs) == len(g.Folded().Outs)
	return err
}

// equalPrograms reports whether programs agree in all but their rank, channel and addresses.
func equalPrograms(a, b *plan.Program) bool {
	return a.Role == b.Role && a.Group == b.Group && a.Phase == b.Phase && a.Fused == b.Fused &&
		a.Proto == b.Proto && a.Threads == b.Threads &&
		a.Workers == b.Workers && a.Slices == b.Slices && a.SliceSteps == b.SliceSteps &&
		a.Transfer.Bytes == b.Transfer.Bytes && a.Transfer.Chunk == b.Transfer.Chunk
}

// sends notes what a program's op puts into a connection.
func (s *scan) sends(gi, id int32, op *plan.Op, rep bool) error {
	c := s.q.conn(id)
	s.holds = s.holds && c >= 0 && s.e.Conns[c].Snd == gi
	if c < 0 {
		return nil
	}
	pc := &s.conn
	s.plan.ConnInto(pc, id)
	m := &s.q.model[c]
	s.holds = s.holds && pc.Kind == m.Kind && pc.Route.Transport == m.Route.Transport &&
		pc.Route.SrcGDR == m.Route.SrcGDR && pc.Route.DstGDR == m.Route.DstGDR &&
		pc.Route.Flush == m.Route.Flush && s.e.FromHost(pc) == s.e.Conns[c].FromHost &&
		s.w.Reads(pc) == s.e.Conns[c].Read
	s.w.Uses = s.w.Uses[:0]
	if err := s.w.Stores(pc); err != nil {
		return err
	}
	s.note(c, rep)
	if engine.Staged(pc) { // how fast host memory is depends on all that passes it
		s.w.Stage(pc, s.e.Groups[gi].InTransit(op))
	}
	return s.addMessage(c, pc, rep)
}

// receives notes what comes into a program from nodes whose links are not
// examined.
func (s *scan) receives(gi, id int32, rep bool) error {
	c := s.q.conn(id)
	s.holds = s.holds && c >= 0 && s.e.Conns[c].Rcv == gi
	if c < 0 {
		return nil
	}
	pc := &s.conn
	s.plan.EndsInto(pc, id)
	if !host.Reduces(pc) && s.q.home[s.plan.Comm.NodeOf[pc.Src]] >= 0 {
		return nil // noted with its sender
	}
	s.plan.ConnInto(pc, id)
	return s.addMessage(c, pc, rep)
}

// addMessage notes the network's part of a connection.
func (s *scan) addMessage(c int32, pc *plan.Conn, rep bool) error {
	if pc.Kind == connect.NVLSRoute || pc.Route.Transport != connect.NET {
		return nil
	}
	if host.Reduces(pc) {
		return s.contribution(c, pc, rep)
	}
	s.w.Uses = s.w.Uses[:0]
	if err := s.nw.Gather(pc); err != nil {
		return err
	}
	m := &s.q.model[c]
	if m.Route.Transport != connect.NET { // of equivalent pairs one may go by NICs and one through memory
		s.holds = false
		return nil
	}
	want, err := s.nw.PortRate(s.plan.Comm.NodeOf[m.Src], m.Route.SrcNet)
	if err != nil {
		return err
	}
	got, err := s.nw.PortRate(s.plan.Comm.NodeOf[pc.Src], pc.Route.SrcNet)
	if err != nil {
		return err
	}
	s.holds = s.holds && got == want && s.nw.Later(pc) == s.nw.Later(m)
	if err := s.nw.Cross(pc, got); err != nil {
		return err
	}
	kind := c + int32(len(s.e.Conns))
	s.note(kind, rep)
	for role, thread := range [2]int32{pc.Route.SrcProxy, pc.Route.DstProxy} {
		s.byThread = append(s.byThread, served{threadKind{kind, int32(role), thread}, pc.Channel, pc.ID})
	}
	return nil
}

// contribution notes a head's part in what the network reduces.
func (s *scan) contribution(c int32, pc *plan.Conn, rep bool) error {
	s.w.Uses = s.w.Uses[:0]
	if err := s.nw.GatherHead(pc); err != nil {
		return err
	}
	kind, role := c+int32(len(s.e.Conns)), int32(1)
	s.note(kind, rep)
	rank, _, sends := host.Head(pc)
	if sends {
		role = 0
	}
	s.byThread = append(s.byThread, served{threadKind{kind, role, rank}, pc.Channel, pc.ID})
	return nil
}

// thread is the rank whose proxy thread represents a rank's: the same one of
// the node that represents its own.
func (s *scan) thread(rank int32) int32 {
	c := s.plan.Comm
	if home := s.q.home[c.NodeOf[rank]]; home >= 0 {
		return c.NodeRanks[home][c.LocalRank[rank]]
	}
	return rank
}

// joint notes an op that has several peers, or works through the switch.
func (s *scan) joint(gi int32, op *plan.Op, rep bool) error {
	if !s.q.job.HasJoint(&s.e.Groups[gi].Program, op) {
		return nil
	}
	s.w.Uses = s.w.Uses[:0]
	if err := s.w.Joint(op, s.plan); err != nil {
		return err
	}
	s.joints[gi] = true
	s.note(2*int32(len(s.e.Conns))+gi, rep)
	return nil
}

// note adds a flow of a kind that uses the links gathered in w.Uses.
func (s *scan) note(kind int32, rep bool) {
	s.noteUses(kind, s.keepUses(), rep)
}

// noteUses adds a flow of a kind that uses the links of uses[at[0]:at[1]], and counts it in each of them, so
// that sortLinks finds links that are crossed by the same flows.
func (s *scan) noteUses(kind int32, at [2]int32, rep bool) {
	s.flows = append(s.flows, flow{kind: kind, from: at[0], to: at[1], rep: rep})
	for _, u := range s.uses[at[0]:at[1]] {
		for int(u.Link) >= len(s.links) {
			s.links = append(s.links, variates.Multiset{})
		}
		s.links[u.Link].Add(uint64(kind), u.Count)
	}
}

// linkKey is what links must have in common to be one.
type linkKey struct {
	capacity wire.Rate
	crossed  variates.Multiset
}

// sortLinks finds the links that are crossed equally.
func (s *scan) sortLinks() {
	s.class = make([]int32, len(s.links))
	known := map[linkKey]int32{}
	for l := range s.class {
		key := linkKey{s.w.Links.Capacity(wire.LinkID(l)), s.links[l]}
		c, ok := known[key]
		if !ok {
			c = int32(len(s.first))
			known[key] = c
			s.first = append(s.first, wire.LinkID(l))
		}
		s.class[l] = c
	}
}

// sortFlows counts, by kind of traffic, how many of its flows cross the first
// link of each class, and checks that all flows of a kind cross the same
// classes. Where they do not, one that represents them crosses all classes that any
// of them does: left to its own, links would carry only what is on representatives'
// (5 of 14 flows of a ring over 17 DGX H100 whose last channel has less to do, which
// came out 8 % too fast), and what waits for all waits for the fullest.
func (s *scan) sortFlows() {
	s.kinds = make([][]wire.Use, 2*len(s.e.Conns)+len(s.e.Groups))
	fingerprints := make([]variates.Multiset, len(s.kinds))
	met := make([]bool, len(s.kinds))
	s.own = make([]int32, len(s.kinds))
	own := s.own
	for i := range s.flows {
		f := &s.flows[i]
		var p variates.Multiset
		for _, u := range s.uses[f.from:f.to] {
			c := s.class[u.Link]
			p.Add(uint64(c), u.Count)
			if s.first[c] == u.Link {
				s.kinds[f.kind] = count(s.kinds[f.kind], wire.LinkID(c), u.Count)
			}
		}
		s.holds = s.holds && (!met[f.kind] || fingerprints[f.kind] == p)
		met[f.kind], fingerprints[f.kind] = true, p
		if own[f.kind] == 0 || f.rep {
			own[f.kind] = int32(i) + 1
		}
	}
	for k := range s.kinds {
		if own[k] > 0 {
			s.order(k, &s.flows[own[k]-1])
		}
	}
}

// order puts the classes of a kind into the order in which one of its flows crosses them.
func (s *scan) order(kind int, f *flow) {
	path := s.uses[f.from:f.to]
	place := func(u wire.Use) int {
		return slices.IndexFunc(path, func(x wire.Use) bool { return s.class[x.Link] == int32(u.Link) })
	}
	slices.SortStableFunc(s.kinds[kind], func(a, b wire.Use) int { return place(a) - place(b) })
}

func count(uses []wire.Use, l wire.LinkID, n int32) []wire.Use {
	for i := range uses {
		if uses[i].Link == l {
			uses[i].Count += n
			return uses
		}
	}
	return append(uses, wire.Use{Link: l, Count: n})
}

// sortProxies finds the proxy threads that have the same messages, and how
// many of each kind they have.
func (s *scan) sortProxies() {
	s.orderThreads()
	s.proxy = make([]int32, len(s.threads))
	known := map[variates.Multiset]int32{}
	first := []int32{}
	for r := range s.proxy {
		p := s.threads[s.thread(int32(r))]
		c, ok := known[p]
		if !ok {
			c = int32(len(first))
			known[p] = c
			first = append(first, s.thread(int32(r)))
		}
		s.proxy[r] = c
	}
	s.load = map[threadKind]int32{}
	of := make([]int32, 2*len(s.kinds)) // kind and role → class + 1
	for _, j := range s.byThread {
		c := s.proxy[j.thread]
		was := &of[2*j.kind+j.role]
		s.holds = s.holds && (*was == 0 || *was == c+1)
		*was = c + 1
		if s.thread(j.thread) == first[c] {
			load := threadKind{j.kind, j.role, c}
			s.load[load]++
			// several are served one after the other
			s.holds = s.holds && (s.load[load] == 1 || !host.Staggers(s.plan))
		}
	}
}

// orderThreads notes of each thread which kinds of messages it serves, in its
// order: those of one role by channel. Where a quotient's threads had another
// order than the real ones, it would not be exact.
func (s *scan) orderThreads() {
	if !host.Staggers(s.plan) { // no order
		for _, j := range s.byThread {
			s.threads[s.thread(j.thread)].Add(uint64(j.kind)<<1|uint64(j.role), 1)
		}
		return
	}
	s.sortServed()
	place := int32(0)
	for i, j := range s.byThread {
		if place++; s.begins(i) {
			place = 0
		}
		s.holds = s.holds && s.inOrder(i)
		s.threads[s.thread(j.thread)].Add(uint64(place)<<40|uint64(j.kind)<<1|uint64(j.role), 1)
	}
}

// sortServed puts messages into the order in which threads serve them.
func (s *scan) sortServed() {
	slices.SortFunc(s.byThread, func(a, b served) int {
		return cmp.Or(cmp.Compare(s.thread(a.thread), s.thread(b.thread)), cmp.Compare(a.role, b.role),
			cmp.Compare(a.channel, b.channel), cmp.Compare(a.id, b.id))
	})
}

// begins reports whether the i-th message is the first of a thread in its role.
func (s *scan) begins(i int) bool {
	return i == 0 || s.thread(s.byThread[i].thread) != s.thread(s.byThread[i-1].thread) ||
		s.byThread[i].role != s.byThread[i-1].role
}

// inOrder reports whether the quotient's thread, too, serves the i-th message behind the one
// before it.
func (s *scan) inOrder(i int) bool {
	if s.begins(i) {
		return true
	}
	n, before, j := int32(len(s.e.Conns)), s.byThread[i-1].kind, s.byThread[i].kind
	return cmp.Or(cmp.Compare(s.q.model[before-n].Channel, s.q.model[j-n].Channel), cmp.Compare(before, j)) <
		0
}

// weigh reports the classes of which each message of a kind uses a link several times over,
// as one that a proxy thread copies does.
func (s *scan) weigh(kind int, report func(class, by int32)) {
	if s.own[kind] == 0 {
		return
	}
	f := &s.flows[s.own[kind]-1]
	for _, u := range s.uses[f.from:f.to] {
		if u.Count > 1 {
			report(s.class[u.Link], u.Count)
		}
	}
}

// declare gives the quotient its links, routes and proxy threads.
func (s *scan) declare(w *route.Table) error {
	e := s.e
	link := make([]wire.LinkID, len(s.first))
	for c, l := range s.first {
		link[c] = w.Links.AddLink(s.w.Links.Name(l), s.w.Links.Capacity(l))
	}
	route := func(kind int) wire.RouteID {
		w.Uses = w.Uses[:0]
		for _, u := range s.kinds[kind] {
			w.Uses = append(w.Uses, wire.Use{Link: link[u.Link], Count: u.Count})
		}
		return w.Intern()
	}
	n := len(e.Conns)
	for c := range e.Conns {
		e.Conns[c].Route = route(c)
		pc := s.q.model[c]
		if pc.Kind == connect.NVLSRoute || pc.Route.Transport != connect.NET {
			continue
		}
		kind := int32(c + n)
		if host.Reduces(&pc) {
			rank, _, _ := host.Head(&pc)
			net, err := e.Net.JoinHead(&pc, int32(c), &e.Groups[max(e.Conns[c].Snd, e.Conns[c].Rcv)].Program,
				route(c+n))
			if err != nil {
				return err
			}
			nc := &e.Net.Conns[net]
			nc.Represent(s.proxy[rank])
			e.Conns[c].Net = net
			continue
		}
		r := route(c + n)
		s.weigh(c+n, func(class int32, by int32) { e.Net.Weigh(r, link[class], by) })
		net, err := e.Net.Join(&pc, int32(c), &e.Groups[e.Conns[c].Snd].Program, r)
		if err != nil {
			return err
		}
		nc := &e.Net.Conns[net]
		nc.SrcProxy, nc.DstProxy = s.proxy[pc.Route.SrcProxy], s.proxy[pc.Route.DstProxy]
		nc.Src, nc.Dst = s.thread(pc.Src), s.thread(pc.Dst)
		nc.SrcLoad = max(1, s.load[threadKind{kind, 0, nc.SrcProxy}])
		nc.DstLoad = max(1, s.load[threadKind{kind, 1, nc.DstProxy}])
		if s.later != nil {
			nc.Later = s.later[c]
		}
		e.Conns[c].Net = net
	}
	for gi := range e.Groups {
		if s.joints[gi] {
			e.Groups[gi].Joint = route(2*n + gi)
		}
	}
	return e.Net.JoinRails()
}
