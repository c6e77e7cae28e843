package fold

import (
	"math"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/units"
)

// Quotient is a plan's engine in which equivalent programs are merged by a
// symmetry: one of each kind runs, on links of which each represents all that
// are crossed equally, and before proxy threads that have all the messages of a
// real one.
//
// It is exact, bit for bit, where the symmetry is: where every program of a
// kind has the same ops, meets programs of the same kinds over equal
// connections, crosses equally many links of each kind, where every link of a
// kind is crossed equally often by each kind of traffic, and equally so for
// proxy threads and kernels. Then what is equal at one instant is equal at the
// next: the engine knows no order but that of time (rounds of proxy threads,
// progressive filling of links). scan proves all of this for the given plan,
// and rejects a symmetry that does not hold.
type Quotient struct {
	*symmetry
	e        *engine.Engine
	job      *engine.Job
	plan     *plan.Plan
	exact    bool
	meets    bool             // every send has its receive
	drift    units.Time       // see Drift
	per      int32            // connection ids of a rank on a channel, of all operations
	members  []conns          // by operation of the kernel
	lo       int32            // the first channel
	index    []int32          // place in reps · per + kind of connection → connection of the engine, -1
	byOffset map[offset]int32 // the same for send and receive
	first    []int32          // place in reps → first group
	device   []int32          // place in reps → device
	sm       []int32          // place in reps → multiprocessor
	model    []plan.Conn
	readers  map[part][]int32 // connection ids by rank's part of a channel, see users
	writers  map[part][]int32
	all      []plan.Program // of the rank that was used last
	asked    plan.Conn      // for conn and layConns
	walked   struct {       // by each
		cur plan.Cursor
		op  plan.Op
	}
}

// newQuotient lays out groups and connections; links come with the scan.
func newQuotient(e *engine.Engine, j *engine.Job, s *symmetry) *Quotient {
	q := &Quotient{symmetry: s, e: e, job: j, plan: j.Plan, exact: s.equivalent,
		first: make([]int32, len(s.reps)), readers: map[part][]int32{}, writers: map[part][]int32{}}
	q.members, q.per = members(j.Plan)
	q.lo, _ = channelRange(q.members)
	q.layDevices()
	q.layGroups()
	q.meets = true
	if q.rotated {
		q.layOffsets()
	} else {
		q.layConns()
	}
	return q
}

// layDevices puts kinds that meet on one GPU on one device: a kernel ends with
// the last of its channels.
func (q *Quotient) layDevices() {
	root := make([]int32, len(q.reps))
	for i := range root {
		root[i] = int32(i)
	}
	find := func(i int32) int32 {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for r := range q.of[0] {
		if node := q.plan.Comm.NodeOf[r]; q.home[node] != node {
			continue
		}
		for _, of := range q.of[1:] {
			if a, b := find(q.of[0][r]), find(of[r]); a != b {
				root[max(a, b)] = min(a, b)
			}
		}
	}
	q.device = make([]int32, len(q.reps))
	size := []int32{}
	for i := range q.device {
		top := find(int32(i))
		if int(top) == i {
			q.device[i] = int32(len(size))
			size = append(size, 0)
		}
		q.device[i] = q.device[top]
		size[q.device[i]]++
	}
	q.e.Devices = make([]engine.Device, len(size))
	for i := range q.e.Devices {
		q.e.Devices[i].Job = q.job
	}
	q.fullDevices(size)
}

// fullDevices checks that every GPU has all kinds of its device.
func (q *Quotient) fullDevices(size []int32) {
	seen := make([]int32, len(q.reps))
	for i := range seen {
		seen[i] = -1
	}
	for r := range q.of[0] {
		kinds, dev := int32(0), q.device[q.of[0][r]]
		for _, of := range q.of {
			if seen[of[r]] != int32(r) && q.device[of[r]] == dev {
				seen[of[r]] = int32(r)
				kinds++
			}
		}
		q.exact = q.exact && kinds == size[dev]
	}
}

// layGroups lists the programs of the representatives, device by device.
func (q *Quotient) layGroups() {
	e := q.e
	byDevice := make([][]int32, len(e.Devices))
	for i, d := range q.device {
		byDevice[d] = append(byDevice[d], int32(i))
	}
	if q.rotated { // all programs of the representatives' ranks run
		n, last := 0, int32(-1)
		for _, rep := range q.reps {
			if rep.rank != last {
				q.all, last = q.plan.AppendPrograms(q.all[:0], rep.rank), rep.rank
				n += len(q.all)
			}
		}
		e.Groups, e.Conns, q.model = make([]engine.Group, 0, n), make([]engine.Conn, 0, n/2+1),
			make([]plan.Conn, 0, n/2+1)
		e.Net.Expect(n / 2)
	}
	var progs []plan.Program
	q.sm = make([]int32, len(q.reps))
	blocks := e.BlocksGap(q.plan)
	for d, reps := range byDevice {
		e.Devices[d].First, e.Devices[d].SMs = int32(len(e.SMs)), int32(len(reps))
		for _, i := range reps {
			q.first[i], q.sm[i] = int32(len(e.Groups)), int32(len(e.SMs))
			progs = q.programs(progs[:0], q.reps[i])
			e.SMs = append(e.SMs, engine.SM{First: q.first[i], Groups: int32(len(progs))})
			for k := range progs {
				q.job.Gap = max(q.job.Gap, e.GapOf(q.job, &progs[k])+blocks)
				e.Groups = append(e.Groups, engine.NewGroup(e, q.job, &progs[k], int32(d),
					int32(len(e.SMs)-1)))
			}
		}
	}
}

// programs appends the programs of a rank's part of a channel.
func (q *Quotient) programs(dst []plan.Program, s part) []plan.Program {
	if len(q.all) == 0 || q.all[0].Rank != s.rank {
		q.all = q.plan.AppendPrograms(q.all[:0], s.rank)
	}
	for i := range q.all {
		if q.all[i].Channel == s.channel {
			dst = append(dst, q.all[i])
		}
	}
	return dst
}

// GroupOf returns the engine's group that represents a program of the plan.
func (q *Quotient) GroupOf(pr *plan.Program) *engine.Group {
	return &q.e.Groups[q.first[q.place(pr.Channel, pr.Rank)]+pr.Group]
}

// place returns where a rank's part of a channel is in reps.
func (q *Quotient) place(channel, rank int32) int32 {
	return q.of[channel-q.lo][rank]
}

// key names the kind of a connection: the place of the rank that it belongs
// to, and which of its connections it is. Where heads are merged, what
// counts is how far the head is from the rank.
func (q *Quotient) key(id int32) int32 {
	m := &q.members[0]
	for i := len(q.members) - 1; i > 0; i-- {
		if id >= q.members[i].Base {
			m = &q.members[i]
			break
		}
	}
	id -= m.Base
	n := int32(q.plan.Comm.NRanks)
	ch, rank, k := id/m.Per/n+m.Lo, id/m.Per%n, id%m.Per
	if h := q.heads; h > 0 && k < 2*h {
		mine := q.plan.Comm.NVLS[ch].HeadIndex[rank]
		k = k/h*h + (k%h-mine+h)%h
	}
	return q.of[ch-q.lo][rank]*q.per + m.At + k
}

// idOf is the connection id in a place of index, -1 where the operation has not its channel.
func (q *Quotient) idOf(i int32) int32 {
	rep, k, at := q.reps[i/q.per], i%q.per, 0
	for at+1 < len(q.members) && k >= q.members[at+1].At {
		at++
	}
	m := &q.members[at]
	if rep.channel < m.Lo || rep.channel > m.Hi {
		return -1
	}
	return m.Base + ((rep.channel-m.Lo)*int32(q.plan.Comm.NRanks)+rep.rank)*m.Per + k - m.At
}

// conn returns the engine's connection of a plan's, -1 where it is left out.
func (q *Quotient) conn(id int32) int32 {
	if !q.rotated {
		return q.index[q.key(id)]
	}
	q.plan.ConnInto(&q.asked, id)
	if c, ok := q.byOffset[q.offsetOf(q.plan.Comm, &q.asked)]; ok {
		return c
	}
	return -1
}

// users lists which connections each program of a rank's part of a channel
// reads and writes, as id and group alternating.
func (q *Quotient) users(s part) (readers, writers []int32) {
	if _, ok := q.readers[s]; !ok {
		q.listUsers(s.rank)
	}
	return q.readers[s], q.writers[s]
}

// listUsers fills in readers and writers for all channels of a rank.
func (q *Quotient) listUsers(rank int32) {
	q.programs(nil, part{-1, rank}) // all of the rank
	var r, w []int32
	for i := range q.all {
		pr := &q.all[i]
		q.each(pr, func(op *plan.Op) error {
			for _, id := range op.From {
				r = append(r, id, pr.Group)
			}
			for _, id := range op.To {
				w = append(w, id, pr.Group)
			}
			return nil
		})
		if i+1 == len(q.all) || q.all[i+1].Channel != pr.Channel {
			s := part{pr.Channel, rank}
			q.readers[s], q.writers[s] = r, w
			r, w = r[len(r):], w[len(w):]
		}
	}
}

// userOf returns the engine's group at one end of a connection, -1 without.
func (q *Quotient) userOf(s part, id int32, reads bool) int32 {
	list, writers := q.users(s)
	if !reads {
		list = writers
	}
	for i := 0; i < len(list); i += 2 {
		if list[i] == id {
			return q.first[q.place(s.channel, s.rank)] + list[i+1]
		}
	}
	return -1
}

// layConns numbers the connections of the representatives and finds the groups
// at their ends.
func (q *Quotient) layConns() {
	e := q.e
	q.index = make([]int32, len(q.reps)*int(q.per))
	for i := range q.index {
		q.index[i] = -1
	}
	for i := range q.index { // in the order of the plan's ids, on which rounds over heads rely
		id, pc := q.idOf(int32(i)), &q.asked
		if id < 0 {
			continue
		}
		q.plan.EndsInto(pc, id)
		snd, rcv, used := q.usersOf(pc)
		if !used {
			continue
		}
		q.plan.ConnInto(pc, id)
		c := int32(len(e.Conns))
		q.index[q.key(id)] = c
		pr := &e.Groups[max(snd, rcv)].Program
		e.Conns = append(e.Conns, e.ConnOf(pc, pr, snd, rcv))
		q.model = append(q.model, *pc)
		if snd >= 0 {
			own := e.Groups[snd].Folded()
			own.Outs = append(own.Outs, c)
		}
		if rcv >= 0 {
			own := e.Groups[rcv].Folded()
			own.Ins = append(own.Ins, c)
		}
	}
}

// usersOf returns the groups at a connection's ends, of which the network has
// none; used is false where nothing goes over it.
func (q *Quotient) usersOf(c *plan.Conn) (snd, rcv int32, used bool) {
	snd, rcv = -1, -1
	if c.Src == -1 || c.Dst == -1 {
		return snd, rcv, false
	}
	if c.Src != plan.Network {
		if snd = q.userOf(part{c.Channel, c.Src}, c.ID, false); snd < 0 {
			return snd, rcv, false
		}
	}
	if c.Dst != plan.Network {
		if rcv = q.userOf(part{c.Channel, c.Dst}, c.ID, true); rcv < 0 {
			return snd, rcv, false
		}
	}
	return snd, rcv, true
}

// each calls do with one op for each connection that the program's ops use.
func (q *Quotient) each(pr *plan.Program, do func(op *plan.Op) error) error {
	cur, op := &q.walked.cur, &q.walked.op
	q.plan.OpenInto(cur, pr)
	n, turns := int32(math.MaxInt32), int32(math.MaxInt32)
	switch pr.Role {
	case plan.RoleRing:
		n = 2 // the first and the last op lack one end
	case plan.RoleTreeReduce, plan.RoleTreeBroadcast, plan.RoleTreeRoot, plan.RoleReduce, plan.RoleBroadcast,
		plan.RoleSend, plan.RoleRecv, plan.RoleCopy,
		plan.RoleChainReduce, plan.RoleChainBroadcast:
		n = 1
	case plan.RoleScatter, plan.RoleGather:
		turns = 1 // over the heads
	}
	for cur.Next(op) && op.Seq < n && op.Step < turns {
		if err := do(op); err != nil {
			return err
		}
	}
	return nil
}

// Ends implements engine.Folding: an op gets the engine's connections for the plan's.
func (q *Quotient) Ends(g *engine.Group, op *plan.Op) {
	switch g.Program.Role {
	case plan.RoleScatter, plan.RoleGather, plan.RolePAT:
		own := g.Folded()
		own.From, own.To = q.some(own.From[:0], op.From), q.some(own.To[:0], op.To)
		op.From, op.To = own.From, own.To
		return
	}
	// All ops that read, read from the same connections, and so for writing.
	if len(op.From) > 0 {
		op.From = g.Folded().Ins
	}
	if len(op.To) > 0 {
		op.To = g.Folded().Outs
	}
}

func (q *Quotient) some(buf, ids []int32) []int32 {
	for _, id := range ids {
		if i := q.conn(id); i >= 0 {
			buf = append(buf, i)
		}
	}
	return buf
}

// Describe implements engine.Folding.
func (q *Quotient) Describe(conn int32) plan.Conn { return q.model[conn] }

// channelsLater is by how much the end of a chain is later on each channel than simulated.
func (q *Quotient) channelsLater() []units.Time {
	k, c := q.skipped, q.plan.Comm
	out := make([]units.Time, len(q.of))
	end := make([]units.Time, k.head) // of the channel's part of the first kernel, by place
	for ch, of := range q.of {
		for at := range end {
			end[at] = 0
			for _, r := range c.NodeRanks[k.order[at]] {
				end[at] = max(end[at], q.e.SMs[q.sm[of[r]]].End)
			}
		}
		out[ch] = k.later(end)
	}
	return out
}

// Finish returns when each rank ends, and by how much the first and the last of so many operations end later
// than simulated.
func (q *Quotient) Finish(ends []units.Time, operations int) (ranks []units.Time, first, last units.Time) {
	ranks = make([]units.Time, len(q.of[0]))
	for r := range ranks {
		ranks[r] = ends[q.device[q.of[0][r]]]
	}
	if q.skipped != nil {
		first = q.skipped.finish(q.plan.Comm.NodeOf, ranks)
		last = q.skipped.last(q.channelsLater(), operations)
		if q.skipped.drifts {
			q.drift = first
		}
	}
	return ranks, first, last
}
