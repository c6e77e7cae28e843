package plan

import (
	"fmt"
	"iter"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Plan is one operation of a communicator, ready to run. It holds only what
// differs between operations; programs are generated on demand, for a
// 1,024-rank ring has tens of millions of ops. A Plan may be read by several
// goroutines at once.
type Plan struct {
	Req   Request
	Comm  *connect.Comm
	Split Split // zero for send/recv operations and for one rank

	kind   kind
	rings  [][]int32 // ring position by rank, by channel of the split
	p2p    *p2pSchedule
	nvls   *nvlsShape
	direct *directShape
	nets   []NetGroup
	netOf  []int32  // channel of the split · ranks + rank → group, -1
	list   *Listing // programs given op by op
}

// kind selects the generator.
type kind uint8

const (
	nothing kind = iota
	selfCopy
	selfKernel
	ringAllReduce
	ringAllGather
	ringReduceScatter
	ringBroadcast
	ringReduce
	treeAllReduce
	patAllGather
	patReduceScatter
	nvlsKind
	directKind
	chainKind
	p2pKind
	listed
)

// Role tells what a program's thread group does.
type Role uint8

// Roles.
const (
	RoleRing Role = iota
	RoleTreeReduce
	RoleTreeBroadcast
	RoleTreeRoot // reduces and broadcasts in one
	RolePAT
	RoleScatter // NVLS, CollNetDirect: input to the heads' buffers
	RoleGather  // NVLS, CollNetDirect: heads' buffers to output
	RoleReduce  // NVLS head: reduce through the switch (and broadcast at the top); CollNet head: reduce for the network
	RoleBroadcast
	RoleSend
	RoleRecv
	RoleCopy // to itself, no connection
	RoleChainReduce
	RoleChainBroadcast
)

var roleNames = [...]string{"ring", "tree-reduce", "tree-broadcast", "tree-root", "pat", "scatter", "gather",
	"reduce", "broadcast", "send", "recv", "copy", "chain-reduce", "chain-broadcast"}

// String returns the role's word in plan text and traces.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// Program is one thread group of one rank on one channel; its ops run in
// order. All programs of a rank's channel share one SM.
type Program struct {
	Rank, Channel int32
	Group         int32 // dense within the rank's channel
	// Phase orders programs of one rank and channel: those of a phase start
	// when all of the phase before have finished (send/recv batches).
	Phase   int32
	Role    Role
	Proto   coll.Protocol
	Threads int32 // threads of the group
	// Workers are the threads that move data: a Simple group that sends spares
	// a warp for the fence and the flag (prims_simple.h:582).
	Workers int32
	// Slices is into how many slices an op is cut, each taking SliceSteps FIFO
	// steps on every connection of the op, empty slices too.
	Slices, SliceSteps int32

	p2p p2pWork // send/recv only
}

// OpSteps is the number of FIFO steps that one op takes of a connection.
func (pr *Program) OpSteps() int32 { return pr.Slices * pr.SliceSteps }

// Build makes the plan of r on c.
func Build(c *connect.Comm, r Request) (*Plan, error) {
	if err := r.validate(c); err != nil {
		return nil, err
	}
	if err := r.Params.poll(); err != nil {
		return nil, err
	}
	if err := c.CheckNets(); err != nil {
		return nil, err
	}
	p := &Plan{Req: r, Comm: c}
	switch {
	case c.NRanks == 1:
		return p, p.buildOneRank()
	case isP2P(r.Func):
		return p, p.buildP2P()
	case r.Count == 0:
		return p, nil
	}
	s, err := schedule(c, &r)
	if err != nil {
		return nil, err
	}
	p.Split = s
	if len(c.Channels) <= s.ChannelHi && (r.Algo == coll.Ring || r.Algo == coll.Tree) {
		return nil, &RequestError{"Comm", fmt.Sprintf("has %d channels, the split needs %d", len(c.Channels), s.ChannelHi+1)}
	}
	switch r.Algo {
	case coll.Ring:
		err = p.buildRing()
	case coll.Tree:
		p.kind = treeAllReduce
		err = p.checkTrees()
	case coll.PAT:
		p.kind = patAllGather
		if r.Func == coll.ReduceScatter {
			p.kind = patReduceScatter
		}
	case coll.NVLS, coll.NVLSTree:
		p.kind = nvlsKind
		err = p.buildNVLS()
	case coll.CollNetDirect:
		p.kind = directKind
		err = p.buildDirect()
	case coll.CollNetChain:
		p.kind = chainKind
		err = p.buildChain()
	}
	if err != nil {
		return nil, err
	}
	return p, p.checkConnCount()
}

// checkConnCount refuses plans whose connection ids would not fit.
func (p *Plan) checkConnCount() error {
	if p.numConns() > math.MaxInt32 {
		return &UnsupportedError{fmt.Sprintf("%v over %d ranks", p.Req.Func, p.Comm.NRanks),
			fmt.Sprintf("%d connections do not fit a plan", p.numConns())}
	}
	return nil
}

// Programs lists the programs of a rank, by channel, then group.
func (p *Plan) Programs(rank int32) []Program { return p.AppendPrograms(nil, rank) }

// AppendPrograms appends the programs of a rank to dst.
func (p *Plan) AppendPrograms(dst []Program, rank int32) []Program {
	switch p.kind {
	case nothing:
		return dst
	case selfCopy, selfKernel:
		return p.oneRankPrograms(dst)
	case p2pKind:
		return p.p2p.programs(p, dst, rank)
	case listed:
		return p.list.programs(dst, rank)
	}
	for ch := int32(p.Split.ChannelLo); ch <= int32(p.Split.ChannelHi); ch++ {
		dst = p.appendChannel(dst, rank, ch)
	}
	return dst
}

func (p *Plan) appendChannel(dst []Program, rank, ch int32) []Program {
	base := Program{Rank: rank, Channel: ch, Proto: p.Req.Proto, Slices: 1, SliceSteps: 1, Threads: int32(p.Req.Warps) * WarpSize}
	switch p.kind {
	case treeAllReduce:
		return p.treePrograms(dst, base)
	case nvlsKind:
		if p.nets != nil {
			return p.nvlsNetPrograms(dst, base)
		}
		return p.nvlsPrograms(dst, base)
	case directKind:
		return p.directPrograms(dst, base)
	case chainKind:
		return p.chainPrograms(dst, base)
	case patAllGather, patReduceScatter:
		base.Role = RolePAT
		base.Threads, base.Workers = patThreads, patThreads
		return append(dst, base)
	}
	part := &p.Split.Lo
	base.Role = RoleRing
	base.Slices, base.SliceSteps = int32(part.ChunkSteps/part.SliceSteps), int32(part.SliceSteps)
	return append(dst, base.withWorkers(true))
}

// withWorkers sets Workers from Threads.
func (pr Program) withWorkers(sends bool) Program {
	pr.Workers = pr.Threads
	if sends && pr.Proto == coll.Simple && pr.Threads >= 3*WarpSize {
		pr.Workers -= WarpSize
	}
	return pr
}

// Find returns the program of (rank, channel, group).
func (p *Plan) Find(rank, channel, group int32) (Program, bool) {
	if rank < 0 || int(rank) >= p.Comm.NRanks {
		return Program{}, false
	}
	for _, pr := range p.Programs(rank) {
		if pr.Channel == channel && pr.Group == group {
			return pr, true
		}
	}
	return Program{}, false
}

// Cursor opens the program of (rank, channel, group); a cursor without ops
// where there is none.
func (p *Plan) Cursor(rank, channel, group int32) *Cursor {
	c := new(Cursor)
	if pr, ok := p.Find(rank, channel, group); ok {
		p.OpenInto(c, &pr)
	}
	return c
}

// Open opens a program that Programs listed.
func (p *Plan) Open(pr *Program) *Cursor {
	c := new(Cursor)
	p.OpenInto(c, pr)
	return c
}

// Ops yields every op of the plan, rank by rank, program by program. The
// slices of an Op are good only until the next is yielded.
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

// ElemSize returns the size of the elements that the plan moves: that of the
// type, or one byte where NCCL counts bytes.
func (p *Plan) ElemSize() units.Bytes {
	switch {
	case p.kind == selfCopy || p.kind == selfKernel:
		return p.Req.Type.Size()
	case isP2P(p.Req.Func):
		return 1
	}
	_, es := p.Req.elements()
	return es
}

// Slices returns how an op of the given payload is cut: n slices of size
// bytes, of which the last non-empty may be shorter and the rest are empty
// (prims_simple.h, genericOp). LL and LL128 do not slice.
func (p *Plan) Slices(pr *Program, payload units.Bytes) (n int, size units.Bytes) {
	if pr.Proto != coll.Simple || pr.Slices <= 1 {
		return int(max(pr.Slices, 1)), payload
	}
	es := int64(p.ElemSize())
	step := int64(p.Comm.BuffSizes[coll.Simple]) / FIFOSteps / es * int64(pr.SliceSteps)
	s := max(divUp(int64(payload)/es, 16*int64(pr.Slices))*16, step/32)
	return int(pr.Slices), units.Bytes(s * es)
}

// NumConns bounds the connection ids: they are 0 to NumConns-1, though not
// every id need be in use.
func (p *Plan) NumConns() int32 { return int32(p.numConns()) }

func (p *Plan) numConns() int64 {
	n := int64(p.Comm.NRanks)
	ch := int64(p.Split.NChannels)
	switch p.kind {
	case ringAllReduce, ringAllGather, ringReduceScatter, ringBroadcast, ringReduce:
		return ch * n
	case treeAllReduce, chainKind:
		return ch * n * 2
	case directKind:
		return ch * n * headIDs(p.direct.nHeads)
	case patAllGather, patReduceScatter:
		return ch * n * int64(patDims(p.Comm.NRanks))
	case nvlsKind:
		return ch * n * headIDs(p.nvls.nHeads)
	case p2pKind:
		return p.p2p.numConns(p)
	case listed:
		return int64(len(p.list.Conns))
	}
	return 0
}

// ConnsPerRank is how many connection ids each rank has on a channel; 0 for
// plans that do not number them so (send/recv, and plans from text).
func (p *Plan) ConnsPerRank() int32 {
	if p.kind == p2pKind || p.kind == listed || p.Split.NChannels == 0 {
		return 0
	}
	return int32(p.numConns() / int64(p.Split.NChannels) / int64(p.Comm.NRanks))
}

// Conn describes a connection by its id. An id that no op uses gives a Conn
// whose Src or Dst is -1; one that leads to or from the network has Network
// there.
func (p *Plan) Conn(id int32) Conn {
	c := Conn{ID: id, Src: -1, Dst: -1}
	if id < 0 || id >= p.NumConns() {
		return c
	}
	n := int32(p.Comm.NRanks)
	switch p.kind {
	case ringAllReduce, ringAllGather, ringReduceScatter, ringBroadcast, ringReduce:
		c.Kind = connect.RingRoute
		c.Channel, c.Src = int32(p.Split.ChannelLo)+id/n, id%n
		c.Dst = p.Comm.Channels[c.Channel].Ring[c.Src].Next
	case treeAllReduce:
		p.treeConn(&c)
	case patAllGather, patReduceScatter:
		p.patConn(&c)
	case nvlsKind:
		p.nvlsConn(&c)
	case directKind:
		p.directConn(&c)
	case chainKind:
		p.chainConn(&c)
	case p2pKind:
		p.p2p.conn(p, &c)
	case listed:
		return p.list.Conns[id]
	}
	if p.Comm.RouteOf != nil && c.Src != -1 && c.Dst != -1 {
		c.Route = p.Comm.RouteOf(c.Src, c.Dst, int(c.Channel), p.graphKind(c.Kind))
	}
	return c
}

// graphKind names the graph whose NICs a connection uses: the tree between the
// heads of nodes is connected by the NVLS graph (transport/nvls.cc:214;
// search.cc:1287).
func (p *Plan) graphKind(k connect.RouteKind) connect.RouteKind {
	if p.kind == nvlsKind && k == connect.TreeRoute {
		return connect.NVLSRoute
	}
	return k
}
