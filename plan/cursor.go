package plan

import (
	"github.com/simccl/simccl/units"
)

// Cursor makes the ops of one program, one by one, without allocating. The
// zero Cursor has no ops. A Cursor is not to be copied while in use.
type Cursor struct {
	p          *Plan
	next       func(*Cursor, *Op) bool
	pr         Program
	seq        int32
	opSteps    int32
	sent, took int32 // FIFO steps so far on the sending and the receiving side

	geom
	order []int32 // ring order seen from rank 0
	n     int32   // ranks
	pos   int32   // position in the ring
	j     int32   // op within the turn of the loop
	at    int32   // block that the op is about: a position in the ring

	from, to []int32
	fromBuf  [4]int32
	toBuf    [4]int32
	head     int32 // NVLS
	net      netCursor
	pat      *patState
	ops      []Op
}

// geom is the share of one channel in bytes: part begins at grid and has total
// bytes, of which off are done; a turn takes loop bytes in chunks of chunk.
type geom struct {
	grid, total, chunk, loop, off int64
	es                            int64
	block                         int64 // bytes of one rank's block in the larger buffer
	turn                          int32
}

// OpenInto makes c the cursor of a program that Programs listed, at its first
// op. It allocates only for NVLS, CollNet and PAT.
func (p *Plan) OpenInto(c *Cursor, pr *Program) {
	*c = Cursor{p: p, pr: *pr, opSteps: pr.OpSteps(), from: c.from[:0], to: c.to[:0], pat: c.pat}
	switch p.kind {
	case selfCopy, selfKernel:
		c.openOneRank()
	case p2pKind:
		c.openP2P()
	case listed:
		c.ops = p.list.opsOf(pr)
		c.next = (*Cursor).nextListed
	case treeAllReduce:
		c.geom = p.geometry(pr.Channel)
		c.openTree()
	case nvlsKind:
		c.geom = p.geometry(pr.Channel)
		if p.nets != nil {
			c.openNVLSNet()
			break
		}
		c.openNVLS()
	case directKind:
		c.geom = p.geometry(pr.Channel)
		c.openDirect()
	case chainKind:
		c.geom = p.geometry(pr.Channel)
		c.openChain()
	case patAllGather, patReduceScatter:
		c.geom = p.geometry(pr.Channel)
		c.openPAT()
	case nothing:
	default:
		c.geom = p.geometry(pr.Channel)
		c.openRing()
	}
}

// Next makes the next op; false where the program has ended. Every field of
// op is set.
func (c *Cursor) Next(op *Op) bool { return c.next != nil && c.next(c, op) }

// Program returns the program that c is open on.
func (c *Cursor) Program() *Program { return &c.pr }

// geometry returns the share of a channel (ncclCollCbdPart, device.h:345).
func (p *Plan) geometry(ch int32) geom {
	s := &p.Split
	_, es := p.Req.elements()
	g := geom{es: int64(es)}
	count, _ := p.Req.elements()
	g.block = count * g.es
	i := int64(ch) - int64(s.ChannelLo)
	if s.Striped {
		p.stripes(&g, i)
		return g
	}
	part := &s.Mid
	mids := int64(s.NChannels - 2)
	switch {
	case i == 0:
		part = &s.Lo
	case i == int64(s.NChannels-1):
		part = &s.Hi
		g.grid = (s.Lo.Count + mids*s.Mid.Count) * g.es
	default:
		g.grid = (s.Lo.Count + (i-1)*s.Mid.Count) * g.es
	}
	g.total = part.Count * g.es
	// Chunks are whole grains, and a grain is a whole number of elements.
	g.chunk = int64(part.ChunkSize)
	g.loop = g.chunk
	return g
}

// emit fills the fields of op that all primitives share and counts it.
func (c *Cursor) emit(op *Op, do Do, bytes int64) {
	op.Rank, op.Channel, op.Group, op.Seq = c.pr.Rank, c.pr.Channel, c.pr.Group, c.seq
	op.Do = do
	op.Bytes = units.Bytes(max(bytes, 0))
	op.From, op.To = nil, nil
	op.Step = c.took
	if do&Recv != 0 {
		op.From = c.from
		c.took += c.opSteps
	}
	if do&Send != 0 {
		op.To = c.to
		op.Step = c.sent
		c.sent += c.opSteps
	}
	op.Src, op.Dst = Ref{}, Ref{}
	op.RecvOff, op.SendOff, op.RecvAhead, op.SendAhead = 0, 0, 0, 0
	c.seq++
}

func input(off int64) Ref  { return Ref{Input, units.Bytes(off)} }
func output(off int64) Ref { return Ref{Output, units.Bytes(off)} }
