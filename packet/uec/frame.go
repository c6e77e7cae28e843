package uec

// Flags of a frame, in frame.what.
const (
	flagAck     uint64 = 1 << iota // an acknowledgement
	flagNack                       // the packet was trimmed on its way
	flagCE                         // congestion experienced, or its echo
	flagTrimmed                    // a header without payload
	flagLast                       // trimmed on the link to the host
	flagResent                     // a retransmission, or its echo
	flagAsk                        // an acknowledgement is asked for

	flagsAhead = flagAck | flagNack | flagTrimmed // of control frames, which pass data
)

// Where in frame.what its other numbers are, 16 bits each.
const (
	sizeAt = 16
	pathAt = 32
	slotAt = 48

	sizeBits = 0xffff << sizeAt
	pathBits = 0xffff << pathAt
)

// answer is the bit of frame.who that control frames of receivers have.
const answer = 1

// frame is a frame that waits or travels. It is copied from hop to hop: three words are, and what was
// written in parts just before could not be read as a whole until it is in the cache.
type frame struct {
	at   int64  // ps: its last bit at the end of the link, with the latency of the switch there
	who  uint64 // its place in engine.goals; from bit 32 its packet
	what uint64 // flags; its size in bytes, its path, the slot of the acknowledgement's content
}

// identity is frame.who of a flow's packet.
func identity(flow int32, psn uint32) uint64 { return uint64(psn)<<32 | uint64(flow)<<1 }

// goal is the place in engine.goals of where a frame goes to.
func (f *frame) goal() uint32 { return uint32(f.who) }

func (f *frame) flow() int32  { return int32(uint32(f.who) >> 1) }
func (f *frame) psn() uint32  { return uint32(f.who >> 32) }
func (f *frame) size() uint16 { return uint16(f.what >> sizeAt) }
func (f *frame) path() uint16 { return uint16(f.what >> pathAt) }
func (f *frame) slot() uint16 { return uint16(f.what >> slotAt) }

// ahead is 1 for control frames, else 0.
func (f *frame) ahead() uint16 {
	some := f.what & flagsAhead
	return uint16((some | -some) >> 63)
}

// has reports whether a frame has one of some flags.
func (f *frame) has(flags uint64) bool { return f.what&flags != 0 }
