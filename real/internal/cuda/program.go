package cuda

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"structs"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Limits of kernels/plan.h.
const (
	maxEnds   = 8
	maxFrom   = 3
	maxTo     = 4
	maxGroups = 16 // programs of a block that run at the same time
	maxWarps  = 20
	maxLanes  = 64 // NCCL's MAXCHANNELS
)

// The tables of kernels/plan.h.
type (
	endRow struct {
		_                   structs.HostLayout
		slots, theirs, ours uint64
		step, slot          uint64
		ready, launch       uint64
		peer, sends         uint32
		seen                uint64
	}
	opRow struct {
		_                    structs.HostLayout
		src, dst, bytes      uint64
		slice                uint32
		do                   uint16
		srcBuf, dstBuf       uint8
		from                 [maxFrom]uint8
		to                   [maxTo]uint8
		froms, tos, slices   uint8
		recvAhead, sendAhead uint8
		recvOff, sendOff     uint32
		there                uint64
	}
	programRow struct {
		_                            structs.HostLayout
		ops, times                   uint64
		count, phase, warp, warps    uint32
		proto, steps, barrier, split uint32
		ends                         uint32
		end                          [maxEnds]uint32
		_                            uint32
	}
	laneRow struct {
		_            structs.HostLayout
		first, count uint16
	}
	planArgs struct {
		_              structs.HostLayout
		programs, ends uint64
		in, out        uint64
		scratch        uint64
		outs           [MaxRanks]Ptr
		stop           uint64
		n              int32
		direct, used   uint32
		_              uint32
		lanes          [maxLanes]laneRow
	}
)

// place is an offset in a rank's memory: in its arena on the GPU, or on the host.
type place struct {
	rank int32
	host bool
	off  units.Bytes
}

// wiring is the location of a plan's connections: the FIFO and the copy of the sender's count are at the
// receiver, the receiver's count at the sender; all are on the host between GPUs without peer access.
type wiring struct {
	conns []wire // by connection id
	arena []units.Bytes
	host  []units.Bytes
}

type wire struct {
	used                     bool
	proto                    coll.Protocol
	slots, tail, head, ready place
	messages                 []message // by number
}

// message is the data that one end of a connection posts in one op and the other end takes: where the
// receiver stores it, and whether it goes there directly.
type message struct {
	at, bytes units.Bytes
	slices    int32
	direct    bool
}

// Bits of a row's do in addition to plan.Do's (kernels/plan.h).
const (
	inPlace = 256
	toPlace = 512
)

// stores reports whether the first use that op makes of the received data is to store it in the output.
func stores(p *plan.Plan, pr *plan.Program, op *plan.Op) bool {
	const never = plan.Reduce | plan.HoldRecv | plan.Accum
	return pr.Proto == coll.Simple && pr.Role != plan.RoleBlock && len(op.From) == 1 &&
		op.Do&plan.Copy != 0 && op.Do&never == 0 && op.Dst.Buf == plan.Output &&
		op.Src.Buf == plan.NoBuffer && op.RecvOff == 0 && op.RecvAhead == 0 &&
		p.Conn(op.From[0]).Route.Transport == connect.P2P &&
		(op.Do&plan.PostOp == 0 || p.Req.Op != coll.Avg)
}

// eachOp calls do for every op of all ranks.
func eachOp(p *plan.Plan, do func(*plan.Program, *plan.Op) error) error {
	var cur plan.Cursor
	var op plan.Op
	for rank := range int32(p.Comm.NRanks) {
		for _, pr := range p.Programs(rank) {
			for p.OpenInto(&cur, &pr); cur.Next(&op); {
				if err := do(&pr, &op); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// listen records what receivers do with each message.
func (w *wiring) listen(p *plan.Plan) error {
	return eachOp(p, func(pr *plan.Program, op *plan.Op) error {
		for _, id := range slices.Concat(op.From, op.To) {
			c := &w.conns[id]
			if c.used && c.proto != pr.Proto {
				return &exec.NotImplementedError{Feature: fmt.Sprintf("connection %d with %v and %v", id,
					c.proto, pr.Proto), Missing: "a FIFO of each protocol"}
			}
			c.used, c.proto = true, pr.Proto
		}
		if op.Do&plan.HoldRecv == 0 {
			for _, id := range op.From {
				w.conns[id].messages = append(w.conns[id].messages, message{op.Dst.Off, op.Bytes, pr.Slices,
					stores(p, pr, op)})
			}
		}
		return nil
	})
}

// aim marks the messages that go directly to their destination: the sender must have them complete, and all
// receivers must store them at the same offset.
func (w *wiring) aim(p *plan.Plan) error {
	sent := make([]int, len(w.conns))
	return eachOp(p, func(pr *plan.Program, op *plan.Op) error {
		if op.Do&plan.HoldSend != 0 {
			return nil
		}
		direct := op.Do&plan.Accum == 0 && op.SendOff == 0 && op.SendAhead == 0
		var all []*message
		for _, id := range op.To {
			if sent[id] >= len(w.conns[id].messages) {
				return fmt.Errorf("connection %d: message %d is sent but never received", id, sent[id])
			}
			m := &w.conns[id].messages[sent[id]]
			sent[id]++
			all = append(all, m)
			direct = direct && m.direct && m.at == all[0].at && m.bytes == op.Bytes && m.slices == pr.Slices
		}
		for _, m := range all {
			m.direct = direct
		}
		return nil
	})
}

// counterPitch keeps counters in separate cache lines.
const counterPitch = 128

func newWiring(p *plan.Plan) (*wiring, error) {
	n := p.Comm.NRanks
	w := &wiring{conns: make([]wire, p.NumConns()), arena: make([]units.Bytes, n),
		host: make([]units.Bytes, n)}
	take := func(rank int32, host bool, size units.Bytes) place {
		at := &w.arena[rank]
		if host {
			at = &w.host[rank]
		}
		pl := place{rank, host, *at}
		*at += (size + counterPitch - 1) / counterPitch * counterPitch
		return pl
	}
	if err := exec.NeedsNoReducingNetwork(p, "GPUs"); err != nil {
		return nil, err
	}
	if err := w.listen(p); err != nil {
		return nil, err
	}
	if err := w.aim(p); err != nil {
		return nil, err
	}
	for id := range w.conns {
		c := &w.conns[id]
		if !c.used {
			continue
		}
		conn := p.Conn(int32(id))
		if conn.Kind == connect.NVLSRoute {
			return nil, &exec.UnsupportedError{Feature: "plan of NVLS",
				Needs: "kernels that use NVLink multicast",
				Found: "peer memory only; NCCL_ALGO=Ring,Tree leaves NVLS out"}
		}
		host := conn.Route.Transport != connect.P2P
		if host && c.proto == coll.LL128 {
			return nil, &exec.UnsupportedError{Feature: "LL128 through host memory",
				Needs: "stores of 128 bytes that arrive whole, as over NVLink",
				Found: fmt.Sprintf("rank %d does not reach rank %d; NCCL_PROTO=LL,Simple leaves LL128 out",
					conn.Src, conn.Dst)}
		}
		c.slots = take(conn.Dst, host, p.Comm.BuffSizes[c.proto])
		c.tail = take(conn.Dst, host, counterPitch)
		sender := conn.Src
		if host {
			sender = conn.Dst
		}
		c.head, c.ready = take(sender, host, counterPitch), take(sender, host, counterPitch)
	}
	return w, nil
}

// Table is one rank's part of a plan in the form that the kernel reads, without addresses.
type Table struct {
	Rank     int
	Func     coll.Func
	kernel   [2]string // file and name
	n        int
	wiring   *wiring
	lanes    []laneRow
	programs []programRow
	firstOp  []int // by program
	workers  []int // by program: warps in NCCL's plan
	ops      []opRow
	ends     []tableEnd
	warps    int
	slices   int // of all programs
	plan     *plan.Plan
	passed   map[tableEnd]int // number of messages that the rows so far post or take
}

// tableEnd is an end of a connection that the rank uses.
type tableEnd struct {
	conn int32
	send bool
}

// Compiler writes the tables of a plan's ranks.
type Compiler struct {
	p     *plan.Plan
	w     *wiring
	warps int // 0: the plan's number for LL and LL128, 16 for Simple
}

// NewCompiler assigns the memory of the plan's connections. warps is the number of warps of a block that move
// data; 0: the plan's number for LL and LL128, 16 for Simple.
func NewCompiler(p *plan.Plan, warps int) (*Compiler, error) {
	if p.Comm.NRanks > MaxRanks {
		return nil, &exec.UnsupportedError{Feature: "plan on GPUs",
			Needs: fmt.Sprintf("at most %d ranks of one host", MaxRanks), Found: fmt.Sprintf("%d ranks",
				p.Comm.NRanks)}
	}
	w, err := newWiring(p)
	if err != nil {
		return nil, err
	}
	return &Compiler{p, w, min(warps, 16)}, nil
}

// Table returns the table of a rank.
func (c *Compiler) Table(rank int) (*Table, error) {
	t := &Table{Rank: rank, Func: c.p.Req.Func, n: c.p.Comm.NRanks, wiring: c.w, plan: c.p,
		passed: map[tableEnd]int{}}
	progs := c.p.Programs(int32(rank))
	if len(progs) > math.MaxUint16 {
		return nil, &exec.NotImplementedError{Feature: fmt.Sprintf("%d programs of a rank", len(progs)),
			Missing: "a larger table"}
	}
	known := map[tableEnd]uint32{}
	grain := uint64(0)
	for i := range progs {
		if i == 0 || progs[i].Channel != progs[i-1].Channel {
			t.lanes = append(t.lanes, laneRow{first: uint16(i)})
		}
		t.lanes[len(t.lanes)-1].count++
		row := programRow{phase: uint32(progs[i].Phase), proto: uint32(progs[i].Proto),
			steps: uint32(max(progs[i].SliceSteps, 1))}
		t.firstOp = append(t.firstOp, len(t.ops))
		t.workers = append(t.workers, int(progs[i].Workers)/warpSize)
		if err := t.addOps(&progs[i], &row, known, &grain); err != nil {
			return nil, err
		}
		t.programs = append(t.programs, row)
	}
	if len(t.lanes) > maxLanes {
		return nil, &exec.NotImplementedError{Feature: fmt.Sprintf("%d channels of a rank", len(t.lanes)),
			Missing: "a larger table"}
	}
	for _, l := range t.lanes {
		if err := t.deal(t.programs[l.first:][:l.count], int(l.first), c.warps); err != nil {
			return nil, err
		}
	}
	return t, t.choose(grain)
}

// addOps appends a program's ops and the ends they use.
func (t *Table) addOps(pr *plan.Program, row *programRow, known map[tableEnd]uint32, grain *uint64) error {
	var cur plan.Cursor
	var op plan.Op
	room := t.capacity(pr)
	index := func(id int32, send bool) (uint8, error) {
		e := tableEnd{id, send}
		at, ok := known[e]
		if !ok {
			at = uint32(len(t.ends))
			known[e] = at
			t.ends = append(t.ends, e)
		}
		i := slices.Index(row.end[:row.ends], at)
		if i < 0 {
			if i = int(row.ends); i == maxEnds {
				return 0, &exec.NotImplementedError{
					Feature: fmt.Sprintf("a program of more than %d connections", maxEnds),
					Missing: "a larger table"}
			}
			row.end[i] = at
			row.ends++
		}
		return uint8(i), nil
	}
	if pr.Role == plan.RoleBlock && pr.Proto != coll.Simple {
		return &exec.NotImplementedError{Feature: fmt.Sprintf("a schedule of %v", pr.Proto),
			Missing: "flags of empty messages; Simple runs"}
	}
	for t.plan.OpenInto(&cur, pr); cur.Next(&op); row.count++ {
		if op.Do&plan.Accum != 0 && pr.Role != plan.RoleBlock {
			op.Src = plan.Ref{} // the present content of the destination is the operand instead
		}
		n, slice := t.plan.Slices(pr, op.Bytes)
		if err := t.fits(pr, &op, n, slice, room); err != nil {
			return err
		}
		r := opRow{src: uint64(op.Src.Off), dst: uint64(op.Dst.Off), bytes: uint64(op.Bytes),
			slice: uint32(slice), do: uint16(op.Do),
			srcBuf: uint8(op.Src.Buf), dstBuf: uint8(op.Dst.Buf), froms: uint8(len(op.From)),
			tos: uint8(len(op.To)), slices: uint8(n),
			recvAhead: uint8(op.RecvAhead), sendAhead: uint8(op.SendAhead), recvOff: uint32(op.RecvOff),
			sendOff: uint32(op.SendOff)}
		var err error
		for i, id := range op.From {
			if r.from[i], err = index(id, false); err != nil {
				return err
			}
		}
		for i, id := range op.To {
			if r.to[i], err = index(id, true); err != nil {
				return err
			}
		}
		t.place(&op, &r)
		*grain |= r.src | r.dst | r.bytes | uint64(r.recvOff|r.sendOff)
		if n > 1 {
			*grain |= uint64(slice)
		}
		t.ops = append(t.ops, r)
		t.slices += n
	}
	return nil
}

// fits returns an error for an op that does not fit a row of the table, or the buffer of its step.
func (t *Table) fits(pr *plan.Program, op *plan.Op, n int, slice, room units.Bytes) error {
	if len(op.From) > maxFrom || len(op.To) > maxTo || n > 255 || op.Bytes < 0 || slice >= 1<<32 {
		return &exec.NotImplementedError{
			Feature: fmt.Sprintf("%v of %d and to %d connections in %d slices", op.Do, len(op.From),
				len(op.To), n), Missing: "a larger table"}
	}
	if pr.Proto != coll.Simple && (pr.OpSteps() != 1 || op.RecvAhead|op.SendAhead != 0 ||
		op.RecvOff|op.SendOff != 0) {
		return &exec.NotImplementedError{Feature: fmt.Sprintf("%v of %d steps", pr.Proto, pr.OpSteps()),
			Missing: "a kernel for it"}
	}
	if first := min(slice, op.Bytes); (op.Do&plan.Send != 0 && first+op.SendOff > room) ||
		(op.Do&plan.Recv != 0 && first+op.RecvOff > room) {
		return fmt.Errorf("rank %d channel %d op %d: a slice of %d bytes does not fit the %d bytes of "+
			"its step: the buffer of %v is too small", t.Rank, pr.Channel, op.Seq, first, room, pr.Proto)
	}
	return nil
}

// place marks an op whose messages go directly to their destinations.
func (t *Table) place(op *plan.Op, r *opRow) {
	take := func(id int32, send bool) message {
		e := tableEnd{id, send}
		t.passed[e]++
		return t.wiring.conns[id].messages[t.passed[e]-1]
	}
	if op.Do&plan.HoldRecv == 0 {
		for _, id := range op.From {
			if take(id, false).direct {
				r.do |= inPlace
			}
		}
	}
	if op.Do&plan.HoldSend == 0 {
		for _, id := range op.To {
			if m := take(id, true); m.direct {
				r.do |= toPlace
				r.there = uint64(m.at)
			}
		}
	}
}

// capacity returns the payload in bytes of a slice of a program.
func (t *Table) capacity(pr *plan.Program) units.Bytes {
	slot := t.plan.Comm.BuffSizes[pr.Proto] / plan.FIFOSteps
	switch pr.Proto {
	case coll.LL:
		return slot / 2
	case coll.LL128:
		return slot / 128 * 120
	}
	return slot * units.Bytes(max(pr.SliceSteps, 1))
}

// deal assigns warps to the programs of each block, phase by phase. One or two Simple programs get two more
// each, to wait and to signal; a program whose messages are all stored by other ranks directly needs only
// one. LL and LL128 get NCCL's number if warps is 0: barriers of few warps are faster.
func (t *Table) deal(progs []programRow, first, warps int) error {
	for i := 0; i < len(progs); {
		j, idle := i, 0
		for ; j < len(progs) && progs[j].phase == progs[i].phase; j++ {
			if t.passive(first + j) {
				idle++
			}
		}
		k := j - i
		if k > maxGroups {
			return &exec.NotImplementedError{Feature: fmt.Sprintf("%d programs of a channel at once", k),
				Missing: "a larger block"}
		}
		most := cmp.Or(warps, 16)
		each, at, barrier := max((most-idle)/max(k-idle, 1), 1), 0, uint32(1) // barrier 0 is the block's
		own := warps == 0 && t.flagged(progs[i:j], first+i)
		for g := range progs[i:j] {
			pr := &progs[i+g]
			pr.warp, pr.warps, pr.barrier = uint32(at), uint32(each), barrier
			switch {
			case own:
				pr.warps = uint32(t.workers[first+i+g])
			case t.passive(first + i + g):
				pr.warps = 1
			case coll.Protocol(pr.proto) == coll.Simple && k <= 2:
				pr.warps, pr.split = uint32(each+2), 1
			}
			at += int(pr.warps)
			if barrier++; pr.split == 1 {
				barrier++
			}
		}
		t.warps = max(t.warps, at)
		i = j
	}
	return nil
}

// flagged reports whether all of the programs, the first of which has the given index, use LL or LL128 with a
// number of warps of their own for which a block has room.
func (t *Table) flagged(progs []programRow, first int) bool {
	sum := 0
	for i, pr := range progs {
		w := t.workers[first+i]
		if sum += w; w == 0 || coll.Protocol(pr.proto) == coll.Simple {
			return false
		}
	}
	return sum <= maxWarps
}

// passive reports whether a program only waits for its data.
func (t *Table) passive(program int) bool {
	end := len(t.ops)
	if program+1 < len(t.firstOp) {
		end = t.firstOp[program+1]
	}
	for _, o := range t.ops[t.firstOp[program]:end] {
		if o.do&inPlace == 0 || o.tos > 0 {
			return false
		}
	}
	return true
}

// planTypes are the types that plan kernels reduce, with their names in kernels.
var planTypes = map[coll.DataType]string{
	coll.Float64: "f64", coll.Float32: "f32", coll.Float16: "f16", coll.BFloat16: "bf16",
	coll.Int8: "i8", coll.Uint8: "u8", coll.Int32: "i32", coll.Uint32: "u32", coll.Int64: "i64",
	coll.Uint64: "u64",
}

// choose selects the kernel. grain is the bitwise OR of all offsets and sizes.
func (t *Table) choose(grain uint64) error {
	r := &t.plan.Req
	file, kind := t.kind()
	if !r.Func.Reduces() || t.n == 1 {
		t.kernel = [2]string{file + "moves", kind + "1_move"}
		if grain%4 == 0 {
			t.kernel[1] = kind + "4_move"
		}
		return nil
	}
	typ, ok := planTypes[r.Type]
	if !ok || !r.Op.Valid() {
		return &exec.NotImplementedError{Feature: fmt.Sprintf("plan of %v of %v, %v", r.Func, r.Type, r.Op),
			Missing: "a kernel for that type"}
	}
	t.kernel = [2]string{file + typ, kind + typ + "_" + opNames[r.Op]}
	return nil
}

// kind returns the file and name of the kernel: kernels for a single protocol start faster than those for
// all.
func (t *Table) kind() (file, kernel string) {
	var with [coll.Simple + 1]bool
	for _, pr := range t.programs {
		with[pr.proto] = true
	}
	switch with {
	case [...]bool{coll.LL: true, coll.Simple: false}:
		return "flag_", "words_"
	case [...]bool{coll.LL128: true, coll.Simple: false}:
		return "flag_", "lines_"
	}
	return "plan_", "plan_"
}
