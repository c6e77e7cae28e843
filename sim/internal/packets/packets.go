package packets

import (
	"math"
	"slices"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/internal/fluid"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Settings configure the network between hosts.
type Settings struct {
	// Config is the configuration of package packet. Marking is by link rate; a rate without an entry uses
	// the entry of the nearest rate, scaled in proportion.
	packet.Config
	// Hop is the delay of a cable for which none is given.
	Hop units.Time
	// Hybrid carries messages as flows while no queue can form.
	Hybrid bool
	// Timed are the faults that begin and end during the run.
	Timed []TimedFault
}

// Balanced reports whether switches balance load (adaptive routing) instead of hashing flows (ECMP).
func (s *Settings) Balanced() bool { return s.Routing.Balance != packet.Hashed }

// Model implements wire.Messages: package packet for the cables, package fluid for the links within hosts
// and, in a hybrid, for calm messages on the cables.
type Model struct {
	wire.Layout
	set    Settings
	host   *fluid.Fluid
	frames *packet.Live
	err    error

	cables []cable // by link
	routes []route
	queues []queue
	keys   map[wire.QueueKey]wire.QueueID
	nodes  []wire.Vertex   // of the frames' network
	known  map[int32]int32 // wire.Vertex.ID → node of net
	number map[int32]int32 // wire.Cable.Number/2 → cable of net
	net    packet.Network

	msgs   []message
	free   []int32
	late   []arrival // halves that end later (lands), by time
	done   []int32
	spread []wire.QueueID // scratch of stir
	now    units.Time
	// Only in a hybrid:
	stirred  bool
	onFramed func()        // nil: nothing
	hot      []wire.LinkID // links that are offered more than they carry
	full     units.Time    // cache of due: when the first of their queues is too long; -1: outdated
	ported   event.Queue   // by port: when its first queue pair has sent all its bytes
	popped   event.Event
}

var _ wire.Messages = (*Model)(nil)

// cable is the state of a link; on: it is a direction of a cable between hosts.
type cable struct {
	wire.Cable
	on, faulty bool
	crossing
	carried units.Bytes // payload
	nano    wire.Work   // the rest below a byte
}

// route is a route, divided into cables (path) and links within hosts. IDs are those of Model.host.
type route struct {
	host wire.RouteID  // links within hosts
	all  wire.RouteID  // all links in a hybrid; else host
	net  wire.RouteID  // cables, in a hybrid
	path []wire.LinkID // cables, in order
	used bool
	cap  wire.Rate // capacity of the slowest link within hosts
}

// queue is a queue pair with its messages: those in wait have not finished on the links of hosts yet.
type queue struct {
	route wire.RouteID
	trip  units.Time // delay of its cables together
	wait  []int32    // messages; the one at head is on the hosts' links
	head  int
	live  int     // messages that have not arrived
	cross []int32 // in a hybrid: calm messages; the one at past is on the cables, those before have crossed
	past  int
	sent  wire.Work
	// Only in a hybrid:
	framed, lossy bool
	limit         float64    // bit/s: the most it sends, by its port and the links within hosts
	tail          units.Time // see Model.tail
	from          []int32    // from[k]: index in the inputs (crossing.from) of path[k+1] of the link path[k]
	sends         bool       // in the estimate its host has bytes left to send
	ends          float64    // the value of sending.turn at which it has sent all
	rate          int64      // bit/s that it offers in the estimate
}

// message is a message in progress. It arrives once both halves have ended: links of hosts, and cables.
type message struct {
	queue wire.QueueID
	left  int8 // halves that have not ended
	token int32
	bound wire.Rate
	work  wire.Work
	flow  wire.FlowID // in a hybrid, its flow over the cables; -1: not started, or ended
}

// arrival is the end of half a message at a known later time.
type arrival struct {
	at  units.Time
	msg int32
}

// least is the token of message 0 on the links of hosts in Model.host, whose flows share one space of tokens:
//
//	least + message                  message on the links of hosts
//	least + mostMessages + message   calm message on the cables
//	least + 2·mostMessages and up    flows of Start, with the caller's tokens
const least = math.MinInt32

// mostMessages bounds the messages in progress.
const mostMessages = 1 << 28

// New returns a model without links.
func New(set Settings) *Model {
	return &Model{set: set, host: fluid.New(), keys: map[wire.QueueKey]wire.QueueID{},
		known: map[int32]int32{}, number: map[int32]int32{}}
}

// AddLink implements wire.Links.
func (m *Model) AddLink(name string, c wire.Rate) wire.LinkID {
	m.cables = append(m.cables, cable{})
	m.host.AddLink(name, c)
	return m.Layout.AddLink(name, c)
}

// Limit implements wire.Links.
func (m *Model) Limit(l wire.LinkID, c wire.Rate) {
	m.host.Limit(l, c)
	m.Layout.Limit(l, c)
}

// AddRoute implements wire.Links.
func (m *Model) AddRoute(uses []wire.Use) wire.RouteID {
	r := route{cap: math.MaxInt64}
	var inside []wire.Use
	for _, u := range uses {
		if m.cables[u.Link].on {
			r.path = append(r.path, u.Link)
			continue
		}
		inside = append(inside, u)
		r.cap = min(r.cap, m.Capacity(u.Link)/wire.Rate(max(1, u.Count)))
	}
	r.host = m.host.AddRoute(inside)
	if r.all = r.host; m.set.Hybrid && len(r.path) > 0 {
		var cables []wire.Use
		for _, l := range r.path {
			cables = append(cables, wire.Use{Link: l, Count: 1})
		}
		r.all, r.net = m.host.AddRoute(uses), m.host.AddRoute(cables)
	}
	m.chain(r.path)
	m.routes = append(m.routes, r)
	return m.Layout.AddRoute(uses)
}

// chain puts the cables of a path in order, from the host's port on: wire.Use has no order.
func (m *Model) chain(path []wire.LinkID) {
	for i, l := range path { // it begins at a port of a host
		if m.cables[l].From.Host {
			path[0], path[i] = path[i], path[0]
			break
		}
	}
	for i := 1; i < len(path); i++ {
		for k := i; k < len(path); k++ {
			if m.cables[path[k]].From.ID == m.cables[path[i-1]].To.ID {
				path[i], path[k] = path[k], path[i]
				break
			}
		}
	}
}

// Hop implements wire.Messages.
func (m *Model) Hop() units.Time { return m.set.Hop }

// Whole implements wire.Messages.
func (m *Model) Whole() bool { return m.set.Routing.Balance != packet.Hashed }

// Cable implements wire.Messages.
func (m *Model) Cable(l wire.LinkID, c wire.Cable) {
	m.cables[l].Cable, m.cables[l].on = c, true
	if m.set.Hybrid {
		f := &m.set.Frames
		m.host.Limit(l, wire.Rate(float64(c.Bits)/8e3*float64(f.Payload)/float64(f.Payload+f.Header)))
	}
	if _, ok := m.number[c.Number>>1]; ok {
		return
	}
	m.number[c.Number>>1] = int32(len(m.net.Cables))
	m.net.Cables = append(m.net.Cables, packet.Cable{A: m.node(c.From), B: m.node(c.To), Rate: c.Bits,
		Delay: c.Delay, Loss: c.Loss})
}

// node returns a vertex's node in m.net, and adds it there when first seen.
func (m *Model) node(v wire.Vertex) int32 {
	n, ok := m.known[v.ID]
	if !ok {
		n = int32(len(m.nodes))
		m.known[v.ID] = n
		m.nodes = append(m.nodes, v)
		m.net.Nodes++
		m.net.Switch = append(m.net.Switch, !v.Host)
	}
	return n
}

// Queue implements wire.Messages.
func (m *Model) Queue(r wire.RouteID, key wire.QueueKey) wire.QueueID {
	if q, ok := m.keys[key]; ok {
		return q
	}
	id := wire.QueueID(len(m.queues))
	q := queue{route: r}
	for _, l := range m.routes[r].path {
		q.trip += m.cables[l].Delay
	}
	m.queues, m.keys[key] = append(m.queues, q), id
	return id
}

// priority is the priority of all data: NCCL's traffic is in a single lossless class.
const priority = 3

// Seal implements wire.Model.
func (m *Model) Seal() {
	m.host.Seal()
	if len(m.queues) == 0 {
		return
	}
	m.set.Faults = m.faults()
	for _, f := range m.set.Faults {
		for i := range m.cables {
			if c := &m.cables[i]; c.on && m.number[c.Number>>1] == int32(f.Cable) {
				c.faulty = true
			}
		}
	}
	queues := make([]packet.Queue, len(m.queues))
	for i := range m.queues {
		r := &m.routes[m.queues[i].route]
		q := packet.Queue{Priority: priority}
		for k, l := range r.path {
			c := &m.cables[l]
			if k == 0 {
				q.Src = m.known[c.From.ID]
			}
			q.Dst = m.known[c.To.ID]
			q.Path = append(q.Path, m.number[c.Number>>1])
		}
		if f := &m.set.Frames; r.cap < math.MaxInt64/(1<<16) {
			q.Limit = int64(r.cap) * 8000 / int64(f.Payload) * int64(f.Payload+f.Header)
		}
		queues[i] = q
		m.settle(&m.queues[i], q.Limit)
	}
	m.set.Marking = m.set.MarksOf(&m.net)
	for i := range m.cables {
		if c := &m.cables[i]; c.on {
			c.most = m.act(c)
		}
	}
	if m.err = m.fits(); m.err == nil {
		m.frames, m.err = packet.NewLive(&m.net, queues, &m.set.Config)
	}
}

// settle sets the fields of a queue pair that only a hybrid uses. limit is its rate by the links within hosts
// in bit/s; 0: none.
func (m *Model) settle(q *queue, limit int64) {
	r := &m.routes[q.route]
	q.limit, q.tail = float64(m.cables[r.path[0]].Bits), m.tail(r)
	if limit > 0 {
		q.limit = min(q.limit, float64(limit))
	}
	for k, l := range r.path {
		c := &m.cables[l]
		q.lossy = q.lossy || c.Loss > 0 || c.faulty
		if k == 0 || !m.set.Hybrid {
			continue
		}
		i := slices.IndexFunc(c.from, func(x input) bool { return x.link == r.path[k-1] })
		if i < 0 {
			i = len(c.from)
			c.from = append(c.from, input{link: r.path[k-1]})
		}
		q.from = append(q.from, int32(i))
	}
}

// Start implements wire.Model: a flow within a host.
func (m *Model) Start(now units.Time, r wire.RouteID, bound wire.Rate, w wire.Work, mult,
	token int32) wire.FlowID {
	return m.host.Start(now, m.routes[r].all, bound, w, mult, token)
}

// SetRate implements wire.Model.
func (m *Model) SetRate(now units.Time, f wire.FlowID, bound wire.Rate) {
	m.host.SetRate(now, f, bound)
}

// Carry implements wire.Model.
func (m *Model) Carry(r wire.RouteID, w wire.Work) {
	x := &m.routes[r]
	x.used = true
	m.host.Carry(x.host, w)
	for _, l := range x.path {
		c := &m.cables[l]
		c.nano += w
		c.carried += units.Bytes(c.nano / wire.NanoBytes)
		c.nano %= wire.NanoBytes
	}
}

// Post implements wire.Messages.
func (m *Model) Post(now units.Time, id wire.QueueID, bound wire.Rate, w wire.Work, token int32) {
	if m.err != nil {
		return
	}
	var at int32
	if n := len(m.free); n > 0 {
		at = m.free[n-1]
		m.free = m.free[:n-1]
	} else {
		at = int32(len(m.msgs))
		m.msgs = append(m.msgs, message{})
	}
	m.msgs[at] = message{queue: id, left: 2, token: token, bound: bound, work: w, flow: -1}
	q := &m.queues[id]
	q.sent += w
	if q.live++; m.set.Hybrid && q.live == 1 {
		m.enter(id)
		if m.stirs(id, now) {
			m.stir(now, id)
		}
	}
	if m.set.Hybrid {
		m.offer(now, id, float64(w)/wire.NanoBytes)
	}
	q.wait = append(q.wait, at)
	if len(q.wait)-q.head == 1 {
		m.feed(now, at)
	}
	if !m.set.Hybrid || q.framed {
		m.send(now, id, w, at)
		return
	}
	q.cross = append(q.cross, at)
	if len(q.cross)-q.past == 1 {
		m.flow(now, at)
	}
}

// send gives a message, or the rest of one that was calm, to package packet.
func (m *Model) send(now units.Time, id wire.QueueID, w wire.Work, at int32) {
	m.frames.Send(int32(id), now, int64((w+wire.NanoBytes-1)/wire.NanoBytes), at)
}

// feed starts a message's flow over the links of its hosts.
func (m *Model) feed(now units.Time, at int32) {
	x := &m.msgs[at]
	m.host.Start(now, m.routes[m.queues[x.queue].route].host, x.bound, x.work, 1, least+at)
}

// Next implements wire.Model.
func (m *Model) Next() (at units.Time, ok bool) {
	at, ok = m.host.Next()
	if m.frames != nil {
		if t, due := m.frames.Next(); due && (!ok || t < at) {
			at, ok = t, true
		}
	}
	if len(m.late) > 0 && (!ok || m.late[0].at < at) {
		at, ok = m.late[0].at, true
	}
	if m.set.Hybrid && ok {
		at = min(at, m.due())
	}
	if ok {
		at = max(at, m.now)
	}
	return at, ok
}

// Advance implements wire.Model.
func (m *Model) Advance(now units.Time, done []int32) []int32 {
	m.now = now
	if t, ok := m.host.Next(); ok && t <= now {
		m.done = m.host.Advance(now, m.done[:0])
		for _, tok := range m.done {
			switch {
			case tok >= least+2*mostMessages:
				done = append(done, tok)
			case tok >= least+mostMessages:
				m.crossed(now, tok-least-mostMessages)
			default:
				m.fed(now, tok-least)
			}
		}
	}
	if m.set.Hybrid {
		m.overflow(now)
	}
	for len(m.late) > 0 && m.late[0].at <= now {
		done = m.half(done, m.late[0].msg)
		m.late = m.late[1:]
	}
	if m.frames != nil {
		m.done = m.frames.Advance(now, m.done[:0])
		for _, at := range m.done {
			done = m.half(done, at)
		}
	}
	return done
}

// fed handles the end of a message's flow over the links of its hosts: that half ends once its last byte has
// crossed the cables, and the next message of the queue pair starts.
func (m *Model) fed(now units.Time, at int32) {
	x := &m.msgs[at]
	q := &m.queues[x.queue]
	q.head++
	if q.head == len(q.wait) {
		q.wait, q.head = q.wait[:0], 0
	} else {
		m.feed(now, q.wait[q.head])
	}
	if x.left == 1 && !q.framed { // its host was slower: the last frame leaves now
		m.lands(now+q.tail, at)
		return
	}
	m.lands(now+q.trip, at)
}

// lands schedules the end of half of a message; of equal times the one scheduled first is first.
func (m *Model) lands(t units.Time, at int32) {
	a := arrival{t, at}
	i, _ := slices.BinarySearchFunc(m.late, a, func(x, y arrival) int {
		if x.at <= y.at {
			return -1
		}
		return 1
	})
	m.late = slices.Insert(m.late, i, a)
}

// half ends one half of a message. With the second the message has arrived: its token is appended to done.
func (m *Model) half(done []int32, at int32) []int32 {
	x := &m.msgs[at]
	if x.left--; x.left > 0 {
		return done
	}
	m.free = append(m.free, at)
	if q := &m.queues[x.queue]; m.set.Hybrid {
		if q.live--; q.live == 0 {
			m.leave(m.now, x.queue)
		}
	}
	return append(done, x.token)
}

// Loads implements wire.Model.
func (m *Model) Loads() []wire.Load {
	out := m.host.Loads()
	if m.frames == nil {
		return out
	}
	for i := range m.cables {
		if c := &m.cables[i]; c.on {
			p, f := m.frames.Port(m.ends(c)), &m.set.Frames
			switch out[i].Bytes, out[i].Busy = c.carried, p.Busy; {
			case m.set.Hybrid:
				out[i].Busy = units.Time(float64(c.carried) / float64(f.Payload) * float64(f.Payload+
					f.Header) * 8e12 / float64(c.Bits))
			case m.Whole(): // adaptive routing: frames do not take the paths that Carry counted
				out[i].Bytes = units.Bytes(float64(p.Data) * float64(f.Payload) / float64(f.Payload+f.Header))
			}
			out[i].Capacity = m.Capacity(wire.LinkID(i))
		}
	}
	return out
}

// ends returns the cable of m.net that a link is a direction of; back: from B to A.
func (m *Model) ends(c *cable) (number int32, back bool) {
	number = m.number[c.Number>>1]
	return number, m.net.Cables[number].A != m.known[c.From.ID]
}

// Watch implements wire.Model: rates on links within hosts are reported.
func (m *Model) Watch(report func(l wire.LinkID, at units.Time, rate wire.Rate)) {
	m.host.Watch(report)
}

// Err returns the error for which the network could not be built, as found by Seal.
func (m *Model) Err() error { return m.err }

// Why implements wire.Messages.
func (m *Model) Why() error {
	if m.err != nil {
		return m.err
	}
	if m.frames == nil {
		return nil
	}
	if s := m.frames.Why(); s != nil {
		e := &StallError{Stall: s, Names: m.names(s)}
		for i := range m.cables {
			if c := &m.cables[i]; c.on && m.frames.Stormed(m.ends(c)) {
				e.Paused = append(e.Paused, m.Name(wire.LinkID(i)))
			}
		}
		return e
	}
	return nil
}
