package export

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Flow is one message of a plan: the data that one send primitive puts into one connection. (PAT sends a step
// that several primitives have filled.)
type Flow struct {
	ID    int64 // in the order of ranks, programs, ops and connections
	Conn  plan.Conn
	Bytes units.Bytes
	Chunk int32
	Op    int32   // op that posts it
	Deps  []int64 // flows whose data it forwards; valid until the next flow
	Prev  int64   // previous flow of the same program; -1: none
}

// flowIndex numbers the messages of every connection in order.
type flowIndex struct {
	p     *plan.Plan
	ids   [][]int64
	bytes [][]units.Bytes
	total int64
}

// message identifies the n-th message of a connection.
type message struct {
	conn int32
	n    int64
}

// walk visits the ops of one program and reports the messages that are read for the first time, then those
// that are posted.
type walk struct {
	pr       *plan.Program
	cur      plan.Cursor
	op       plan.Op
	posted   map[int32]int64 // messages so far, by connection
	released map[int32]int64
	pending  map[message]units.Bytes // bytes put into steps that are not posted yet
	deps     map[message][]message   // messages whose data they forward
	seen     map[message]bool        // PAT reads a step several times
}

func newWalk() *walk {
	return &walk{posted: map[int32]int64{}, released: map[int32]int64{}, pending: map[message]units.Bytes{},
		deps: map[message][]message{}, seen: map[message]bool{}}
}

func (w *walk) open(p *plan.Plan, pr *plan.Program) {
	w.pr = pr
	p.OpenInto(&w.cur, pr)
	clear(w.posted)
	clear(w.released)
	clear(w.pending)
	clear(w.deps)
	clear(w.seen)
}

// run calls read and post for every message of the program.
func (w *walk) run(read func(message) error, post func(m message, bytes units.Bytes,
	deps []message) error) error {
	var got []message
	for w.cur.Next(&w.op) {
		op := &w.op
		got = got[:0]
		for _, id := range op.From {
			m := message{id, w.released[id] + int64(op.RecvAhead)}
			got = append(got, m)
			if !w.seen[m] {
				if err := read(m); err != nil {
					return err
				}
			}
			if op.Do&plan.HoldRecv != 0 || op.RecvAhead > 0 {
				w.seen[m] = true
			}
			if op.Do&plan.HoldRecv == 0 {
				delete(w.seen, message{id, w.released[id]})
				w.released[id]++
			}
		}
		for _, id := range op.To {
			m := message{id, w.posted[id] + int64(op.SendAhead)}
			if op.Do&plan.HoldSend == 0 && op.SendAhead == 0 && len(w.pending) == 0 {
				w.posted[id]++
				if err := post(m, op.Bytes, got); err != nil {
					return err
				}
				continue
			}
			if err := w.collect(m, got, post); err != nil {
				return err
			}
		}
	}
	if len(w.pending) > 0 {
		return fmt.Errorf("rank %d channel %d: %d steps are never posted", w.pr.Rank, w.pr.Channel,
			len(w.pending))
	}
	return nil
}

// collect adds a piece to a step, and posts the oldest step when it is complete.
func (w *walk) collect(m message, got []message, post func(message, units.Bytes, []message) error) error {
	op := &w.op
	if op.Do&plan.Accum == 0 {
		w.pending[m] += op.Bytes
	}
	w.deps[m] = append(w.deps[m], got...)
	if op.Do&plan.HoldSend != 0 {
		return nil
	}
	first := message{m.conn, w.posted[m.conn]}
	w.posted[m.conn]++
	bytes, deps := w.pending[first], w.deps[first]
	delete(w.pending, first)
	delete(w.deps, first)
	return post(first, bytes, deps)
}

// onlyMessages returns an error for plans in which ranks interact other than by messages (multicast,
// in-network reduction).
func onlyMessages(p *plan.Plan) error {
	if err := p.Distinct(); err != nil {
		return err
	}
	if len(p.NetGroups()) == 0 {
		return nil
	}
	return &plan.UnsupportedError{What: "list of point-to-point operations",
		Why: fmt.Sprintf("%v has operations of the network, which are none", p.Req.Algo)}
}

// newFlowIndex numbers all messages of the plan.
func newFlowIndex(p *plan.Plan) (*flowIndex, error) {
	if err := onlyMessages(p); err != nil {
		return nil, err
	}
	if ops := p.TotalOps(); ops > math.MaxInt32 {
		return nil, &plan.UnsupportedError{What: "list of point-to-point operations",
			Why: fmt.Sprintf("%d operations are too many for a file", ops)}
	}
	x := &flowIndex{p: p, ids: make([][]int64, p.NumConns()), bytes: make([][]units.Bytes, p.NumConns())}
	w := newWalk()
	var progs []plan.Program
	for rank := range int32(p.Comm.NRanks) {
		progs = p.AppendPrograms(progs[:0], rank)
		for i := range progs {
			w.open(p, &progs[i])
			err := w.run(func(message) error { return nil }, func(m message, n units.Bytes,
				_ []message) error {
				x.ids[m.conn] = append(x.ids[m.conn], x.total)
				x.bytes[m.conn] = append(x.bytes[m.conn], n)
				x.total++
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

// id returns the number of a message; an error if it is never sent.
func (x *flowIndex) id(m message) (int64, error) {
	if m.n >= int64(len(x.ids[m.conn])) {
		return 0, fmt.Errorf("message %d of connection %d is received but never sent", m.n, m.conn)
	}
	return x.ids[m.conn][m.n], nil
}

// EachFlow calls do for every message of the plan, in the order of their numbers. It needs 16 bytes of memory
// per message.
func EachFlow(p *plan.Plan, do func(*Flow) error) error {
	x, err := newFlowIndex(p)
	if err != nil {
		return err
	}
	w := newWalk()
	var f Flow
	var progs []plan.Program
	for rank := range int32(p.Comm.NRanks) {
		progs = p.AppendPrograms(progs[:0], rank)
		for i := range progs {
			w.open(p, &progs[i])
			prev := int64(-1)
			err := w.run(func(message) error { return nil }, func(m message, n units.Bytes,
				deps []message) error {
				f = Flow{ID: f.ID, Conn: p.Conn(m.conn), Bytes: n, Chunk: w.op.Chunk, Op: w.op.Seq,
					Deps: f.Deps[:0], Prev: prev}
				for _, d := range deps {
					id, err := x.id(d)
					if err != nil {
						return err
					}
					if k := len(f.Deps); k == 0 || f.Deps[k-1] != id {
						f.Deps = append(f.Deps, id)
					}
				}
				prev = f.ID
				if err := do(&f); err != nil {
					return err
				}
				f.ID++
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
