package plan

import (
	"fmt"
	"iter"
	"math"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Stream makes the ops of one program in order.
type Stream interface {
	// Next makes the next op and sets every field of it; false at the end. It does not allocate.
	Next(op *Op) bool
}

// Generator makes the programs, ops and connections of one kind of plan: of a ring, of a tree, of sends and
// receives. Several goroutines may use it at once. plan/build has one for each of NCCL's algorithms.
type Generator interface {
	// AppendPrograms appends the programs of a rank to dst, by channel, then group; the phases of a channel
	// never decrease.
	AppendPrograms(dst []Program, rank int32) []Program
	// Open returns a stream at the first op of a program. It may reuse old, which the caller no longer uses.
	Open(pr *Program, old Stream) Stream
	// NumOps returns the number of ops of a program.
	NumOps(pr *Program) int64
	// Fanout returns Plan.Fanout of a program.
	Fanout(pr *Program) int32
	// NumConns bounds the connection ids: they are 0 to NumConns-1.
	NumConns() int64
	// ConnsPerRank is the number of consecutive ids that each rank has on a channel if ids are numbered by
	// channel, then rank; 0 otherwise.
	ConnsPerRank() int32
	// Conn sets Src, Dst, Channel, Kind and NetGroup of the connection c.ID. An end that does not exist stays
	// -1.
	Conn(c *Conn)
	// NetGroups returns Plan.NetGroups.
	NetGroups() []NetGroup
}

// Plan is one operation of a communicator, ready to run. It stores only parameters; programs are generated on
// demand, because a 1,024-rank ring has tens of millions of ops. Several goroutines may read a Plan at once.
type Plan struct {
	Req   Request
	Comm  *connect.Layout
	Split Split // zero for send/recv operations and for one rank

	gen     Generator
	one     OneRank
	elem    units.Bytes
	conns   int32
	nets    []NetGroup
	members []Member // of a joined plan
}

// New makes a plan whose programs g generates. Error: *UnsupportedError if its connection ids exceed 32 bits.
func New(c *connect.Layout, r Request, s Split, g Generator) (*Plan, error) {
	n := g.NumConns()
	if n > math.MaxInt32 {
		return nil, &UnsupportedError{fmt.Sprintf("%v over %d ranks", r.Func, c.NRanks),
			fmt.Sprintf("%d connections do not fit a plan", n)}
	}
	p := &Plan{Req: r, Comm: c, Split: s, gen: g, conns: int32(n), nets: g.NetGroups()}
	if g, ok := g.(OneRankGenerator); ok {
		p.one = g.OneRank()
	}
	switch {
	case p.one == DeviceCopy || p.one == OneRankKernel:
		p.elem = r.Type.Size()
	case r.Func.IsP2P():
		p.elem = 1
	default:
		_, p.elem = r.Elements()
	}
	return p, nil
}

// Programs lists the programs of a rank, by channel, then group. The phases of a channel never decrease.
func (p *Plan) Programs(rank int32) []Program { return p.AppendPrograms(nil, rank) }

// AppendPrograms appends the programs of a rank to dst.
func (p *Plan) AppendPrograms(dst []Program, rank int32) []Program {
	return p.gen.AppendPrograms(dst, rank)
}

// Ops yields every op of the plan, rank by rank, program by program. The slices of an Op are valid only until
// the next one is yielded.
func (p *Plan) Ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		var progs []Program
		var cur Cursor
		var op Op
		for rank := range int32(p.Comm.NRanks) {
			progs = p.AppendPrograms(progs[:0], rank)
			for i := range progs {
				p.OpenInto(&cur, &progs[i])
				for cur.Next(&op) {
					if !yield(op) {
						return
					}
				}
			}
		}
	}
}

// NumOps returns the number of ops of a program. It does not make them, except for PAT, where it counts the
// ops of one chunk.
func (p *Plan) NumOps(pr *Program) int64 { return p.gen.NumOps(pr) }

// TotalOps returns the number of ops of the plan.
func (p *Plan) TotalOps() int64 {
	var progs []Program
	total := int64(0)
	for rank := range int32(p.Comm.NRanks) {
		progs = p.AppendPrograms(progs[:0], rank)
		for i := range progs {
			total += p.NumOps(&progs[i])
		}
	}
	return total
}

// Fanout returns the number of connections that one NCCL primitive serves in a program of RoleScatter or
// RoleGather. The plan has one op for each of them, and op.Chunk is the iteration times Fanout plus the index
// of the connection. It is 1 for all other roles.
func (p *Plan) Fanout(pr *Program) int32 { return p.gen.Fanout(pr) }

// ElemSize returns the size in bytes of the elements that the plan moves: that of the type, or one byte where
// NCCL counts bytes.
func (p *Plan) ElemSize() units.Bytes { return p.elem }

// NumConns bounds the connection ids: they are 0 to NumConns-1, though some may be unused.
func (p *Plan) NumConns() int32 { return p.conns }

// ConnsPerRank is the number of connection ids of each rank on a channel; 0 for plans with another numbering
// (send/recv, and listed plans).
func (p *Plan) ConnsPerRank() int32 { return p.gen.ConnsPerRank() }

// Conn describes a connection by its id. For an id that no op uses, Src or Dst is -1; an end in the network
// is Network.
func (p *Plan) Conn(id int32) Conn {
	var c Conn
	p.ConnInto(&c, id)
	return c
}

// EndsInto is ConnInto without the route, for callers that do not need it.
func (p *Plan) EndsInto(c *Conn, id int32) {
	*c = Conn{ID: id, Src: -1, Dst: -1}
	if id >= 0 && id < p.conns {
		p.gen.Conn(c)
	}
}

// ConnInto is Conn without an allocation: it writes into *c.
func (p *Plan) ConnInto(c *Conn, id int32) {
	p.EndsInto(c, id)
	if p.Comm.RouteOf != nil && c.Src != -1 && c.Dst != -1 {
		c.Route = p.Comm.RouteOf(c.Src, c.Dst, int(c.Channel), c.Kind)
	}
}
