package uec

// Flags of a frame, in frame.what.
const (
	flagAck     uint64 = 1 << iota // an acknowledgement
	flagNack                       // the packet was trimmed on its way
	flagCE                         // congestion experienced, or its echo
	flagTrimmed                    // a header without payload
	flagLast                       // trimmed on the link to the host
	flagResent                     // a retransmission, or its echo
	flagAsk                        // the receiver is to acknowledge

	flagsAhead = flagAck | flagNack | flagTrimmed // control frames overtake data
)

// Bit positions of the 16-bit fields of frame.what.
const (
	sizeAt = 16
	pathAt = 32
	slotAt = 48

	sizeBits = 0xffff << sizeAt
	pathBits = 0xffff << pathAt
)

// answer is the bit of frame.who that is set in frames from receivers to senders.
const answer = 1

// frame is a frame in a queue or on a cable: three words, copied whole from hop to hop. Fields are packed so
// that a copy never reads a word whose parts were just written separately (the load would wait for the
// stores).
type frame struct {
	at   int64  // ps: arrival of its last bit, with the latency of the switch there
	who  uint64 // index into engine.goals; from bit 32 the packet's number
	what uint64 // flags, size in bytes, path, slot of the acknowledgement
}

// identity returns frame.who of a data packet.
func identity(flow int32, psn uint32) uint64 { return uint64(psn)<<32 | uint64(flow)<<1 }

// goal returns the index in engine.goals of the frame's destination.
func (f *frame) goal() uint32 { return uint32(f.who) }

func (f *frame) flow() int32  { return int32(uint32(f.who) >> 1) }
func (f *frame) psn() uint32  { return uint32(f.who >> 32) }
func (f *frame) size() uint16 { return uint16(f.what >> sizeAt) }
func (f *frame) path() uint16 { return uint16(f.what >> pathAt) }
func (f *frame) slot() uint16 { return uint16(f.what >> slotAt) }

// ahead returns 1 for control frames, which overtake data, else 0, without a branch.
func (f *frame) ahead() uint16 {
	some := f.what & flagsAhead
	return uint16((some | -some) >> 63)
}

// has reports whether any of some flags is set.
func (f *frame) has(flags uint64) bool { return f.what&flags != 0 }
