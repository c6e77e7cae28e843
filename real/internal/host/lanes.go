package host

import (
	"cmp"
	"slices"
	"time"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// traceProxies writes the activities of each rank's pump: an operation for each of its connections, and its
// idle times.
func (s *Session) traceProxies(rec *nccl.Recorder) {
	for _, q := range s.pumps {
		for _, o := range q.sends {
			proxyOp(rec, &o.conn, nccl.Send, s.x.log.sends[o.conn.ID], o.hops)
		}
		for _, i := range q.recvs {
			proxyOp(rec, &i.conn, nccl.Recv, s.x.log.recvs[i.conn.ID], i.hops)
		}
		for _, n := range q.idle {
			rec.Proxy(int(q.rank), at(n[0]), at(n[1]), "Idle")
		}
	}
}

// proxyOp writes a connection's messages as one operation: a send from its program's first poll of it until
// the net is done, a receive from its first offer until the program is done.
func proxyOp(rec *nccl.Recorder, c *plan.Conn, d nccl.Dir, pieces []piece, hops []hop) {
	if len(pieces) == 0 {
		return
	}
	op := nccl.ProxyOp{Rank: int(c.Src), Peer: int(c.Dst), Channel: int(c.Channel), Dir: d,
		Steps: int64(len(pieces))}
	if d == nccl.Recv {
		op.Rank, op.Peer = op.Peer, op.Rank
	}
	from, to := pieces[0].began, int64(0)
	for i := range pieces {
		n := units.Bytes(pieces[i].bytes)
		op.TransSize += n
		op.ChunkSize = max(op.ChunkSize, n)
		to = max(to, pieces[i].end)
	}
	for _, h := range hops {
		if d == nccl.Send {
			to = max(to, h.to)
		} else {
			from = min(from, h.from)
		}
	}
	rec.ProxyOperation(0, at(from), at(to), op)
}

// rests records that a poll cycle of a pump moved nothing, moves that it moved something.
func (q *pump) rests() {
	if q.log != nil && q.still == 0 {
		q.still = q.log.now()
	}
}

func (q *pump) moves() {
	if q.still > 0 {
		q.idle = append(q.idle, [2]int64{q.still, q.log.now()})
		q.still = 0
	}
}

// portNode is the first node number of ports that are not in the plan: of connections between ranks of one
// node that use a NIC nevertheless.
const portNode = 64

// place is the position of a connection's end on a timeline.
type place struct {
	s       *Session
	rec     *nccl.Recorder
	nic     int
	number  int32 // number of the end at its port
	rank    int32
	peer    int32
	channel int32
	role    nccl.QPRole
	qps     map[int]int // lane → handle
}

// request is a work request of a place.
type request struct {
	*place
	transport.Work
}

// traceWork writes the work requests of every port, each on the track of its queue pair.
func (s *Session) traceWork(rec *nccl.Recorder) {
	var all []request
	ends := s.x.p.PortEnds()
	keep := func(p *place, works []transport.Work) {
		for _, w := range works {
			all = append(all, request{p, w})
		}
	}
	for _, q := range s.pumps {
		for _, o := range q.sends {
			c := &o.conn
			keep(s.place(rec, c, c.Src, c.Dst, c.Route.SrcNet, ends.Src[c.ID], nccl.QPOut), o.works)
		}
		for _, i := range q.recvs {
			c := &i.conn
			keep(s.place(rec, c, c.Dst, c.Src, c.Route.DstNet, ends.Dst[c.ID], nccl.QPIn), i.works)
		}
	}
	// Counters need posts and completions in the order of time.
	type moment struct {
		at   time.Time
		of   int
		done bool
	}
	var order []moment
	for i := range all {
		if all[i].Opcode != transport.OpCTS && all[i].Opcode != transport.OpArrival {
			order = append(order, moment{all[i].Posted, i, false})
		}
		order = append(order, moment{all[i].Done, i, true})
	}
	slices.SortStableFunc(order, func(a, b moment) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.of, b.of))
	})
	for _, m := range order {
		all[m.of].trace(m.done)
	}
}

// place declares a connection's end to the recorder.
func (s *Session) place(rec *nccl.Recorder, c *plan.Conn, rank, peer, net, number int32,
	role nccl.QPRole) *place {
	w := s.e.cfg.Wire
	dev := w.Device(rank, net)
	if net < 0 {
		net = int32(portNode + dev)
	}
	port := nccl.Port{Node: int(s.x.p.Comm.NodeOf[rank]), Net: int(net), Sockets: w.Net.Name() == "Socket"}
	if devs, err := w.Net.Devices(); err == nil && dev < len(devs) {
		port.Name = devs[dev].Name
	}
	return &place{s: s, rec: rec, nic: rec.NIC(port), number: number, rank: rank, peer: peer,
		channel: c.Channel, role: role, qps: map[int]int{}}
}

// qp returns the handle of a lane of the place.
func (p *place) qp(lane, lanes int) int {
	h, ok := p.qps[lane]
	if !ok {
		role := p.role
		if lane >= lanes {
			role = nccl.QPFlush
		}
		h = p.rec.QP(p.nic, int(nccl.FirstQP(p.number, int32(lanes)))+lane, int(p.peer), int(p.channel), role)
		p.qps[lane] = h
	}
	return h
}

// trace writes the posting of a request or, with done, its completion.
func (r *request) trace(done bool) {
	log := r.s.x.log
	from := max(r.Posted.Sub(log.began).Nanoseconds(), 0)
	to := max(r.Done.Sub(log.began).Nanoseconds(), from+1)
	w := nccl.WorkRequest{NIC: r.nic, QP: r.qp(r.Lane, r.Lanes), Rank: int(r.rank), Device: r.Device,
		QPNum:  int64(r.QP),
		Opcode: r.Opcode, ID: int64(r.ID), Size: units.Bytes(r.Size)}
	switch {
	case !done:
		r.rec.Posted(at(from), &w)
		r.rec.Settle(r.nic, at(from))
	case r.Opcode == transport.OpArrival:
		r.rec.Arrival(at(from), &w)
	default:
		r.rec.Work(at(from), at(to), &w)
		r.rec.Settle(r.nic, at(to))
	}
}
