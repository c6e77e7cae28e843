package collector

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// comm is a communicator. It is being made until all its members have called, then done.
type comm struct {
	id      int
	members []*member // by rank; nil: has not come
	missing int
	done    bool
	made    bool // its members have GPUs; what fails it later is not what its members wait for
	parent  *comm
	share   bool
	fakes   bool // some of its members are no process's
	grid    Grid
	copies  []*comm // without processes, whose ranks do what those of this one do
	failed  int32   // its asynchronous error
	text    string
	kernels []*kernel // by number of the collective launch
	first   int       // number of kernels[0]
	pairs   map[[2]int32]*pair
	splits  []*split
	shrinks []*split
}

// member is a communicator as one of its ranks has it.
type member struct {
	handle  int64
	c       *comm
	rank    int32
	dev     *device
	left    bool
	how     int64 // it left
	failed  int32
	text    string
	posted  int // collective launches
	splits  int
	shrinks int
	pending []*unit
	like    *member   // of a rank that is no process's: which one does the same
	copies  []*member // that do what this one does
	made    int       // number among the communicators of its GPU
}

// split collects the calls of one ncclCommSplit or ncclCommShrink until all members have made theirs.
type split struct {
	from    []*splitter // by rank of the parent
	missing int
	exclude []int32
	share   bool
}

// splitter is one rank's call of a split.
type splitter struct {
	m *member // of the child; nil without a color
	Asked
}

func (m *member) gpu() int { return m.dev.gpu }

// root returns the communicator whose channels and kernels' order this one uses: with splitShare the parent's
// root, else itself.
func (c *comm) root() *comm {
	for c.share && c.parent != nil {
		c = c.parent
	}
	return c
}

// processes returns how many members are processes; the others repeat what one of these does (--fake-ranks).
func (x *comm) processes() (n int) {
	if !x.fakes {
		return len(x.members)
	}
	for _, m := range x.members {
		if m.like == nil {
			n++
		}
	}
	return n
}

func (c *Core) newMember(dev *device) *member {
	m := &member{handle: int64(len(c.members) + 1), dev: dev}
	c.members = append(c.members, m)
	return m
}

// member finds a handle, which must be of a member that has not left.
func (c *Core) member(handle int64) (*member, *reply) {
	if handle < 1 || handle > int64(len(c.members)) || c.members[handle-1].left {
		r := refuse(invalidArgument, "the communicator is not known, or was destroyed")
		return nil, &r
	}
	return c.members[handle-1], nil
}

// init is ncclCommInitRank and its variants: the rank has come.
func (c *Core) init(t *thread, q *request) reply {
	n, rank := q.a[0], q.a[1]
	if n < 1 || rank < 0 || rank >= n || len(q.payload) != 128 {
		return refuse(invalidArgument, "rank %d of %d ranks", rank, n)
	}
	if n > int64(c.set.GPUs) {
		return refuse(invalidUsage,
			"a communicator of %d ranks, and the virtual machine has %d GPUs; take more nodes (--nodes)", n,
			c.set.GPUs)
	}
	key := string(q.payload)
	if old := c.imitated[key]; old != nil && old.done && n == int64(len(old.members)) &&
		old.members[rank].like != nil {
		return refuse(invalidUsage, "rank %d of %d: a process came for it, and the communicator is there "+
			"with %d processes (--fake-ranks); write --fake-ranks with as many as there are", rank, n,
			c.set.Real)
	}
	x := c.forming[key]
	if x == nil {
		x = &comm{members: make([]*member, n), missing: int(n), pairs: map[[2]int32]*pair{}}
		if r := c.set.Real; r > 0 && r < x.missing && (c.job == nil || int(n) >= len(c.job.members)) {
			if x.grid = c.set.Grid; x.grid == nil {
				x.grid = Grid{int(n)}
			}
			if x.grid.Size() != int(n) {
				return refuse(invalidUsage, "a communicator of %d ranks, and --fake-grid %v has %d: what "+
					"ranks do that are no process's is not known", n, x.grid, x.grid.Size())
			}
			x.missing, x.fakes = r, true
		}
		c.forming[key] = x
	}
	switch {
	case int(n) != len(x.members):
		return c.refuseInit(x,
			"rank %d makes a communicator of %d ranks, and others with the same id one of %d", rank, n,
			len(x.members))
	case x.members[rank] != nil:
		return c.refuseInit(x, "two ranks %d with the same id", rank)
	}
	dev := t.p.device(int(q.a[2]))
	for r, o := range x.members {
		if o != nil && o.dev == dev {
			return c.refuseInit(x, "ranks %d and %d are on the same device %d of one process", r, rank,
				dev.id)
		}
	}
	m := c.newMember(dev)
	m.c, m.rank = x, int32(rank)
	x.members[rank] = m
	if x.missing--; c.whole(x) || x.missing == 0 {
		delete(c.forming, key)
		if x.fakes {
			c.imitated[key] = x
		}
		if err := x.fill(); err != nil {
			return c.refuseInit(x, "%v", err)
		}
		c.complete(x)
	}
	return reply{a: [4]int64{m.handle}}
}

// fill adds, under --fake-ranks, a member for each rank that is no process: it repeats its leader in the
// grid.
func (x *comm) fill() error {
	if !x.fakes {
		return nil
	}
	lead, err := x.grid.Leaders(x.there())
	for r, m := range x.members {
		if m == nil && err == nil {
			like := x.members[lead[r]]
			x.members[r] = like.copy(&device{p: like.dev.p, id: -1 - r, gpu: -1,
				streams: map[uint64]*stream{}})
			x.members[r].c, x.members[r].rank = x, int32(r)
		}
	}
	return err
}

// there reports, by rank, which members are processes that have called.
func (x *comm) there() []bool {
	out := make([]bool, len(x.members))
	for r, m := range x.members {
		out[r] = m != nil && m.like == nil
	}
	return out
}

// whole completes, under --fake-grid, a communicator that a group of the job's ranks makes with an id of its
// own: once all processes of the group have called, it adds the members that are no processes, and makes the
// groups without processes that repeat it. It reports whether the communicator is complete.
func (c *Core) whole(x *comm) bool {
	if c.job == nil || len(x.members) >= len(c.job.members) {
		return false
	}
	all, at := c.job.members, make([]int, len(x.members))
	for r, m := range x.members {
		at[r] = slices.IndexFunc(all, func(o *member) bool { return m != nil && o.dev == m.dev })
		if m != nil && at[r] < 0 {
			return false
		}
	}
	parts, inside := c.job.grid.Group(at, c.job.there())
	for k, part := range parts {
		y := x
		if k > 0 {
			y = &comm{members: make([]*member, len(part)), pairs: map[[2]int32]*pair{}}
		}
		y.grid = inside
		for i, r := range part {
			if y.members[i] == nil {
				like := x.members[slices.Index(parts[0], int(all[parts[0][i]].process().rank))]
				y.members[i], y.fakes = like.copy(all[r].dev), true
				y.members[i].c, y.members[i].rank = y, int32(i)
			}
		}
		if k > 0 {
			x.copies = append(x.copies, y)
			c.complete(y)
		}
	}
	return parts != nil
}

// copy adds a member that is no process and repeats what m does.
func (m *member) copy(dev *device) *member {
	out := &member{like: m, dev: dev}
	m.copies = append(m.copies, out)
	return out
}

// process returns the member that m repeats; m itself if it is a process.
func (m *member) process() *member {
	if m.like != nil {
		return m.like
	}
	return m
}

// refuseInit fails a communicator that is being made: its other ranks would wait
// forever.
func (c *Core) refuseInit(x *comm, format string, args ...any) reply {
	text := fmt.Sprintf(format, args...)
	c.warn("a communicator that cannot be made: %s", text)
	c.fail(x, invalidUsage, text)
	return refuse(invalidUsage, "%s", text)
}

// complete gives the members of a communicator GPUs, and lets those that wait for it go on.
func (c *Core) complete(x *comm) {
	x.done = true
	c.changed = true
	if err := c.place(x); err != nil {
		c.fail(x, invalidUsage, err.Error())
		return
	}
	x.made = true
	if c.job == nil && c.set.Grid != nil && x.fakes && x.parent == nil {
		c.job = x
	}
	x.id = len(c.comms)
	c.comms = append(c.comms, x)
	for _, m := range x.members {
		m.made = c.gpus[m.gpu()].groups
		c.gpus[m.gpu()].groups++
	}
}

// place finds the GPUs of devices that have none yet: of one process or of processes
// that chose different devices those of these numbers, else those of the launcher's
// ranks, else of the communicator's. On real devices, which ranks may share, the
// launcher's ranks come first. A rank that is no process's shares a GPU that only such ones have.
func (c *Core) place(x *comm) error {
	byDevice, byLauncher := map[int]bool{}, map[int]bool{}
	mine := map[int]bool{}
	for _, m := range x.members {
		byDevice[m.dev.id] = true
		byLauncher[m.dev.p.launcher] = true
		mine[m.dev.gpu] = true
	}
	launched := len(byLauncher) == len(x.members) && !byLauncher[-1] && !x.fakes
	chosen := len(byDevice) == len(x.members) && !(launched && c.set.Devices == Real) && !x.fakes
	for r, m := range x.members {
		if m.dev.gpu >= 0 {
			continue
		}
		want := r
		switch {
		case chosen:
			want = m.dev.id
		case launched:
			want = m.dev.p.launcher
		}
		// A GPU that another process has chosen, too, is shared.
		busy := func(g int) bool {
			return g < 0 || g >= len(c.gpus) || mine[g] || c.gpus[g].taken && !(chosen && g == m.dev.id) &&
				!(m.like != nil && c.gpus[g].fake)
		}
		for i := 0; busy(want); i++ {
			if i == len(c.gpus) {
				return fmt.Errorf("rank %d of a communicator has no GPU: all %d of the virtual machine are "+
					"taken; take more nodes (--nodes)", r, len(c.gpus))
			}
			want = i
		}
		m.dev.gpu, mine[want] = want, true
		c.gpus[want].taken, c.gpus[want].fake = true, m.like != nil
	}
	return nil
}

// initDone returns the answer to a thread that waits for its communicator; ok is false while members are
// missing.
func (m *member) initDone() (reply, bool) {
	switch {
	case m.failed != 0:
		return refuse(m.failed, "%s", m.text), true
	case m.c == nil || !m.c.done && m.c.failed == 0:
		return reply{}, false
	case m.c.failed != 0:
		return refuse(m.c.failed, "%s", m.c.text), true
	}
	return m.ready(), true
}

// waitInit is initDone for ncclCommInitRank. It succeeds for a communicator that was made and has failed
// since: otherwise the result would depend on when the thread asks.
func (m *member) waitInit() (reply, bool) {
	if m.c != nil && m.c.made && m.failed == 0 {
		return m.ready(), true
	}
	return m.initDone()
}

func (m *member) ready() reply {
	return reply{a: [4]int64{int64(m.c.id), int64(m.rank), int64(len(m.c.members))}}
}

// state is ncclCommGetAsyncError.
func (c *Core) state(q *request) reply {
	m, bad := c.member(q.a[0])
	if bad != nil {
		return *bad
	}
	r, ok := m.initDone()
	if !ok {
		return reply{status: inProgress}
	}
	return r
}

// parent finds the parent of a split.
func (c *Core) parent(handle int64) (*member, *reply) {
	m, bad := c.member(handle)
	if bad != nil {
		return nil, bad
	}
	if r, ok := m.initDone(); !ok || r.status != 0 {
		r = refuse(invalidArgument, "the communicator is not ready: %s", r.text)
		return nil, &r
	}
	return m, nil
}

// split is ncclCommSplit: a rank has come.
func (c *Core) split(q *request) reply {
	m, bad := c.parent(q.a[0])
	if bad != nil {
		return *bad
	}
	x := m.c
	m.splits++
	if len(x.splits) < m.splits {
		x.splits = append(x.splits, &split{from: make([]*splitter, len(x.members)), missing: x.processes(),
			share: q.a[3] != 0})
	}
	s := x.splits[m.splits-1]
	from := &splitter{Asked: Asked{In: q.a[1] >= 0, Color: q.a[1], Key: q.a[2]}}
	if from.In {
		from.m = c.newMember(m.dev)
	}
	s.from[m.rank] = from
	if s.missing--; s.missing == 0 {
		c.children(x, s)
	}
	if from.m == nil {
		return reply{}
	}
	return reply{a: [4]int64{from.m.handle}}
}

// children makes the communicators of a split: by color those with equal ones, in the order of
// their keys, equal keys in that of the parent. Ranks that are no process's make those that
// follow from them, and so do the communicators that do what the parent does.
func (c *Core) children(x *comm, s *split) {
	c.changed = true
	asked := make([]*Asked, len(s.from))
	for r, f := range s.from {
		switch {
		case f != nil:
			asked[r] = &f.Asked
		case slices.Contains(s.exclude, int32(r)):
			asked[r] = &Asked{}
		}
	}
	parts, inside, err := x.grid.Split(asked, func(r int) int { return int(x.members[r].process().rank) },
		c.set.Grid != nil)
	if err != nil {
		for _, f := range s.from {
			if f != nil && f.m != nil {
				f.m.failed, f.m.text = invalidUsage,
					fmt.Sprintf("a communicator with ranks of --fake-ranks: %v", err)
			}
		}
		return
	}
	for _, z := range append([]*comm{x}, x.copies...) {
		for _, part := range parts {
			y := &comm{parent: z, share: s.share, grid: inside, pairs: map[[2]int32]*pair{}}
			if y.grid == nil {
				y.grid = Grid{len(part)}
			}
			for i, r := range part {
				old := z.members[r]
				m := s.from[old.process().rank].m
				if old.like != nil {
					m, y.fakes = m.copy(old.dev), true
				}
				m.c, m.rank = y, int32(i)
				y.members = append(y.members, m)
			}
			c.complete(y)
		}
	}
	for _, f := range s.from {
		if f != nil && f.m != nil {
			f.m.c.twins(f.m)
		}
	}
}

// twins adds to copies the communicators without processes that repeat x. Each member of x that is a process
// calls it; only the first one, by rank, has an effect.
func (x *comm) twins(m *member) {
	if slices.IndexFunc(x.members, func(o *member) bool { return o.like == nil }) != int(m.rank) {
		return
	}
	for _, o := range m.copies {
		if o.c.processes() == 0 && !slices.Contains(x.copies, o.c) {
			x.copies = append(x.copies, o.c)
		}
	}
}

// shrink is ncclCommShrink: a rank that stays has come.
func (c *Core) shrink(q *request) reply {
	m, bad := c.parent(q.a[0])
	if bad != nil {
		return *bad
	}
	x := m.c
	if x.fakes || len(x.copies) > 0 {
		return refuse(invalidUsage, "a communicator with ranks of --fake-ranks cannot be shrunk")
	}
	var exclude []int32
	for b := q.payload; len(b) >= 4; b = b[4:] {
		exclude = append(exclude, int32(binary.LittleEndian.Uint32(b)))
	}
	exclude = slices.Compact(exclude)
	for _, r := range exclude {
		if r < 0 || int(r) >= len(x.members) {
			return refuse(invalidArgument, "rank %d is excluded from a communicator of %d", r, len(x.members))
		}
	}
	if q.a[1]&1 != 0 { // NCCL_SHRINK_ABORT
		c.drop(m)
	}
	m.shrinks++
	if len(x.shrinks) < m.shrinks {
		x.shrinks = append(x.shrinks, &split{from: make([]*splitter, len(x.members)),
			missing: len(x.members) - len(exclude), exclude: exclude, share: q.a[3] != 0})
	}
	s := x.shrinks[m.shrinks-1]
	if !slices.Equal(s.exclude, exclude) {
		return refuse(invalidUsage, "rank %d excludes ranks %v, and another one %v", m.rank, exclude,
			s.exclude)
	}
	from := &splitter{m: c.newMember(m.dev), Asked: Asked{In: true}}
	s.from[m.rank] = from
	if s.missing--; s.missing == 0 {
		c.children(x, s)
	}
	return reply{a: [4]int64{from.m.handle}}
}

// leave is ncclCommDestroy, ncclCommAbort and ncclCommRevoke.
func (c *Core) leave(q *request) reply {
	m, bad := c.member(q.a[0])
	if bad != nil {
		return *bad
	}
	switch q.a[1] {
	case leaveDestroy:
		m.left, m.how = true, leaveDestroy
		c.deserted(m, "has destroyed the communicator")
	case leaveAbort:
		c.abort(m, "has aborted the communicator")
	case leaveRevoke:
		c.drop(m)
		c.deserted(m, "has revoked the communicator")
	}
	return reply{}
}

// abort takes a member out; what it waits for is over, and what others need of it
// fails.
func (c *Core) abort(m *member, why string) {
	m.left, m.how = true, leaveAbort
	if m.c == nil {
		return
	}
	if !m.c.done {
		c.fail(m.c, remoteError, fmt.Sprintf("rank %d %s", m.rank, why))
		return
	}
	c.drop(m)
	c.deserted(m, why)
}

// drop ends a member's pending launches without carrying them out.
func (c *Core) drop(m *member) {
	for _, u := range m.pending {
		c.dropUnit(u)
	}
	m.pending = nil
	c.changed = true
}

// deserted fails a communicator of which calls wait for a member that has left.
func (c *Core) deserted(m *member, why string) {
	if m.c == nil || !m.c.done || m.c.failed != 0 {
		return
	}
	for _, o := range m.c.members {
		for _, u := range o.pending {
			if o == m || !u.needs(m) {
				continue
			}
			text := fmt.Sprintf("rank %d %s, and %s waits for it", m.rank, why, u.describe())
			if m.left && m.how == leaveDestroy {
				c.mismatch(u, text)
			} else {
				c.fail(m.c, remoteError, text)
			}
			return
		}
	}
	if m.how == leaveAbort && m.left {
		c.fail(m.c, remoteError, fmt.Sprintf("rank %d %s", m.rank, why))
	}
}

// fail ends all that is launched on a communicator, with an error.
func (c *Core) fail(x *comm, status int32, text string) {
	if x.failed != 0 {
		return
	}
	x.failed, x.text = status, text
	c.changed = true
	for _, m := range x.members {
		if m == nil {
			continue // it has not come
		}
		list := m.pending
		m.pending = nil
		for _, u := range list {
			u.o.st.failed = true
			c.dropUnit(u)
		}
	}
	for key, y := range c.forming { //lint:sorted at most one is x
		if y == x {
			delete(c.forming, key)
		}
	}
}
