package plan

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Member is one of the plans that a kernel executes.
type Member struct {
	Plan *Plan
	// Fuse identifies the device function: consecutive members on a channel with equal Fuse are works of one
	// batch, which a kernel loads together. Negative: none.
	Fuse int32
	// Task is the number of the operation in the group, for names and checks.
	Task int32
}

// fusedWorks is the largest number of collective works in a batch: 96 bytes each of
// NCCL_MAX_DEV_WORK_BATCH_BYTES (device.h:363).
const fusedWorks = 10

// Join makes one plan of several that one kernel executes: on each channel one after the other, in order,
// each as programs of a later phase. Each member keeps its own connections, while in NCCL the members share
// the FIFOs of a channel; the result is the same, as a member leaves the FIFOs empty for the next one.
//
// Members must be plans for communicator c of two ranks or more. A member in which the network reduces can
// only be alone (*UnsupportedError).
func Join(c *connect.Layout, members []Member) (*Plan, error) {
	g := &joined{members: members, base: make([]int32, len(members)+1)}
	total := int64(0)
	for i := range members {
		p := members[i].Plan
		switch {
		case p.Comm != c:
			return nil, fmt.Errorf("join plans: part %d is of another communicator", i)
		case p.one != NotOneRank || p.Sharing() > 1:
			return nil, &UnsupportedError{fmt.Sprintf("%v in a kernel of several operations", p.Req.Func),
				"only plans of two ranks and more, with connections of their own, are joined"}
		case len(p.nets) > 0:
			return nil, &UnsupportedError{fmt.Sprintf("%v by %v in a kernel of several operations",
				p.Req.Func, p.Req.Algo), "operations that the network reduces are modelled alone"}
		}
		if total += int64(p.conns); total > math.MaxInt32 {
			return nil, &UnsupportedError{fmt.Sprintf("a kernel of %d operations over %d ranks", len(members),
				c.NRanks), fmt.Sprintf("%d connections do not fit a plan", total)}
		}
		g.base[i+1] = int32(total)
	}
	if len(members) == 0 {
		return nil, &UnsupportedError{"a kernel of no operations", "NCCL launches none"}
	}
	return &Plan{Req: members[0].Plan.Req, Comm: c, gen: g, elem: members[0].Plan.elem, conns: int32(total),
		members: members}, nil
}

// Members lists the plans that a joined plan executes; nil for a plan of one operation. The caller must not
// change the result.
func (p *Plan) Members() []Member { return p.members }

// Of returns the plan of a program's operation: p itself, or one of its members.
func (p *Plan) Of(pr *Program) *Plan {
	if p.members != nil {
		return p.members[pr.Member].Plan
	}
	return p
}

// joined generates the programs of several plans. base is the first connection id of each member.
type joined struct {
	members []Member
	base    []int32
}

// AppendPrograms implements Generator.
func (g *joined) AppendPrograms(dst []Program, rank int32) []Program {
	from := len(dst)
	for i := range g.members {
		at := len(dst)
		dst = g.members[i].Plan.AppendPrograms(dst, rank)
		for k := at; k < len(dst); k++ {
			dst[k].Member = int32(i)
			dst[k].Transfer.Conn += g.base[i]
		}
	}
	own := dst[from:]
	slices.SortStableFunc(own, func(a, b Program) int { return int(a.Channel) - int(b.Channel) })
	for len(own) > 0 {
		n := 1
		for n < len(own) && own[n].Channel == own[0].Channel {
			n++
		}
		g.sequence(own[:n])
		own = own[n:]
	}
	return dst
}

// sequence numbers the phases and groups of a channel's programs.
func (g *joined) sequence(list []Program) {
	base, last, works := int32(0), int32(-1), 0
	for i := range list {
		pr := &list[i]
		if i == 0 || pr.Member != list[i-1].Member {
			base = last + 1
			fuse := g.members[pr.Member].Fuse
			if pr.Fused = i > 0 && fuse >= 0 && fuse == g.members[list[i-1].Member].Fuse &&
				works < fusedWorks; !pr.Fused {
				works = 0
			}
			works++
		} else if pr.Phase+base == list[i-1].Phase {
			pr.Fused = list[i-1].Fused
		}
		pr.Phase += base
		pr.Group, last = int32(i), pr.Phase
	}
}

// inner returns a program with its member's own connection ids.
func (g *joined) inner(pr *Program) Program {
	own := *pr
	own.Member = 0
	own.Transfer.Conn -= g.base[pr.Member]
	return own
}

// Open implements Generator.
func (g *joined) Open(pr *Program, old Stream) Stream {
	s, ok := old.(*joinedStream)
	if !ok {
		s = new(joinedStream)
	}
	s.pr, s.base = g.inner(pr), g.base[pr.Member]
	s.ops = g.members[pr.Member].Plan.gen.Open(&s.pr, s.ops)
	return s
}

// joinedStream translates the connections of a member's ops to the joined plan's ids.
type joinedStream struct {
	ops      Stream
	pr       Program
	base     int32
	from, to []int32
}

// Next implements Stream.
func (s *joinedStream) Next(op *Op) bool {
	if s.ops == nil || !s.ops.Next(op) {
		return false
	}
	s.from, s.to = shifted(s.from, op.From, s.base), shifted(s.to, op.To, s.base)
	op.From, op.To = s.from, s.to
	return true
}

func shifted(buf, ids []int32, by int32) []int32 {
	buf = buf[:0]
	for _, id := range ids {
		buf = append(buf, id+by)
	}
	return buf
}

// NumOps implements Generator.
func (g *joined) NumOps(pr *Program) int64 {
	own := g.inner(pr)
	return g.members[pr.Member].Plan.NumOps(&own)
}

// Fanout implements Generator.
func (g *joined) Fanout(pr *Program) int32 {
	own := g.inner(pr)
	return g.members[pr.Member].Plan.Fanout(&own)
}

// NumConns implements Generator.
func (g *joined) NumConns() int64 { return int64(g.base[len(g.members)]) }

// ConnsPerRank implements Generator.
func (g *joined) ConnsPerRank() int32 { return 0 }

// Conn implements Generator.
func (g *joined) Conn(c *Conn) {
	i := sort.Search(len(g.members), func(i int) bool { return g.base[i+1] > c.ID })
	id := c.ID
	c.ID -= g.base[i]
	g.members[i].Plan.gen.Conn(c)
	c.ID = id
}

// NetGroups implements Generator.
func (g *joined) NetGroups() []NetGroup { return nil }

// joinedLayout returns the memory of all members of a rank together.
func (p *Plan) joinedLayout(rank int32) Layout {
	var l Layout
	var in, out units.Bytes
	for i := range p.members {
		own := p.members[i].Plan.Layout(rank)
		in, out = in+own.Input, out+own.Output
	}
	l.Input, l.Output = in, out
	return l
}
