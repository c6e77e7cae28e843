package plan

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Program is one thread group of one rank on one channel; its ops run in order. All programs of a rank's
// channel share one SM.
type Program struct {
	Rank, Channel int32
	Group         int32 // numbered without gaps within the rank's channel
	// Phase orders the programs of a rank and channel: a phase starts when all programs of the phase before
	// have finished (send/recv batches).
	Phase int32
	// Member is the index in Plan.Members of the program's operation, 0 in a plan of one operation. Fused:
	// its works were loaded together with those of the phase before.
	Member  int32
	Fused   bool
	Role    Role
	Proto   coll.Protocol
	Threads int32 // threads of the group
	// Workers is the number of threads that move data: a Simple group that sends reserves a warp for the
	// fence and the flag (prims_simple.h:582).
	Workers int32
	// Slices is the number of slices of an op, each taking SliceSteps FIFO steps on every connection of the
	// op; empty slices count too.
	Slices, SliceSteps int32
	// Transfer is the data that a program of a send/recv operation moves; zero for all other programs.
	Transfer Transfer
}

// OpSteps returns the number of FIFO steps that one op takes on a connection.
func (pr *Program) OpSteps() int32 { return pr.Slices * pr.SliceSteps }

// Transfer is one part of a rank's send, receive or copy to itself: Bytes from Off on, in chunks.
type Transfer struct {
	Conn int32
	Off  units.Bytes // in the input (send) or the output (receive)
	// RoleCopy: offset in the output; of registered buffers also RoleSend: in the receiver's
	Dst   units.Bytes
	Bytes units.Bytes
	Chunk units.Bytes
}

// Slices returns how an op of the given payload is divided: n slices of size bytes, of which the last
// non-empty one may be shorter and the rest are empty (prims_simple.h, genericOp). LL and LL128 have a single
// slice.
func (p *Plan) Slices(pr *Program, payload units.Bytes) (n int, size units.Bytes) {
	if p.members != nil {
		p = p.members[pr.Member].Plan
	}
	if pr.Proto != coll.Simple || pr.Slices <= 1 {
		return int(max(pr.Slices, 1)), payload
	}
	es := int64(p.elem)
	step := int64(p.Comm.BuffSizes[coll.Simple]) / FIFOSteps / es * int64(pr.SliceSteps)
	grains := 16 * int64(pr.Slices) // a slice is a multiple of 16 elements
	s := max((int64(payload)/es+grains-1)/grains*16, step/32)
	return int(pr.Slices), units.Bytes(s * es)
}
