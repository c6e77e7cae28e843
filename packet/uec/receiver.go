package uec

import "math/bits"

// ack is the content of an acknowledgement in flight; the frame carries only its slot.
type ack struct {
	bitmap     uint64 // packets from base on that have arrived
	received   int64  // bytes so far
	base       uint32
	cumulative uint32 // all packets below have arrived
}

// ackEvery is the number of bytes between acknowledgements.
const ackEvery = 16384

// receiver is the receiving half of a flow.
type receiver struct {
	expected uint32   // all packets below have arrived
	came     []uint64 // ring of bits: packets above expected that have arrived
	holes    int      // packets that arrived out of order
	accepted int64    // bytes since the last acknowledgement
	received int64    // bytes so far, without duplicates
	any, ask bool     // a packet has arrived; acknowledge once no packet is missing
	acks     []ack    // contents of acknowledgements in flight, by slot
	free     []uint16 // free slots
	next     uint16   // slot to reuse once mostAcks are in use (some acknowledgements were dropped)
}

// mostAcks is the number of slots that a frame's 16 bits can name.
const mostAcks = 1 << 16

func (r *receiver) has(psn uint32) bool {
	if psn < r.expected {
		return true
	}
	n := uint32(len(r.came)) * 64
	return psn-r.expected < n && *r.word(psn)>>(psn%64)&1 != 0
}

// word returns the word of the ring that holds a packet's bit.
func (r *receiver) word(psn uint32) *uint64 { return &r.came[psn/64&uint32(len(r.came)-1)] }

// note records a packet that arrives out of order, and reports whether it had arrived before.
func (r *receiver) note(psn uint32) bool {
	if psn < r.expected {
		return true
	}
	if psn-r.expected+64 >= uint32(len(r.came))*64 {
		r.grow(psn)
	}
	w, bit := r.word(psn), uint64(1)<<(psn%64)
	was := *w&bit != 0
	*w |= bit
	return was
}

// grow makes room for a packet above expected.
func (r *receiver) grow(psn uint32) {
	for psn-r.expected+64 >= uint32(len(r.came))*64 {
		n := make([]uint64, max(2, 2*len(r.came)))
		for p := r.expected; p < r.expected+uint32(len(r.came))*64; p++ {
			if r.has(p) && p >= r.expected {
				n[p/64&uint32(len(n)-1)] |= 1 << (p % 64)
			}
		}
		r.came = n
	}
}

// advance moves expected past the packet that just arrived and the packets after it that had arrived before.
func (r *receiver) advance() {
	r.expected++
	for r.holes > 0 {
		w, at := r.word(r.expected), r.expected%64
		n := uint32(bits.TrailingZeros64(^(*w >> at))) // consecutive packets that have arrived
		*w &^= (1<<n - 1) << at
		r.expected += n
		r.holes -= int(n)
		if at+n < 64 {
			return
		}
	}
}

// bits returns the bits of the 64 packets from base on.
func (r *receiver) bits(base uint32) (b uint64) {
	if r.holes == 0 {
		return 0
	}
	b = *r.word(base) >> (base % 64)
	if base%64 != 0 {
		b |= *r.word(base + 64) << (64 - base%64)
	}
	return b
}

// base returns the first packet of the bitmap that answers packet psn: the latest 64, but not below expected.
func (r *receiver) base(psn uint32) uint32 {
	if psn >= 63 && psn-63 > r.expected+1 {
		return psn - 63
	}
	return r.expected + 1
}

// receive handles a data packet. It is acknowledged at once if it is marked, the first of its flow, asked
// for, or if ackEvery bytes have arrived.
func (e *engine) receive(h *host, f *frame) {
	r, psn, size := &e.rcv[f.flow()], f.psn(), int64(f.size())
	ce, asked := f.has(flagCE), f.has(flagAsk)
	r.accepted += size
	if psn != r.expected && r.note(psn) {
		e.again = max(e.again, f.at)
		base := r.base(psn)
		if ce {
			base = psn
		}
		e.acknowledge(h, r, f, base, ce)
		return
	}
	force := !r.any
	r.any = true
	r.received += size
	if asked {
		force, r.ask = true, true
	}
	if psn == r.expected {
		r.advance()
		if r.holes == 0 && r.ask {
			force, r.ask = true, false
		}
	} else {
		r.holes++
	}
	if ce || force || r.accepted >= ackEvery {
		base := psn
		if !ce && !asked {
			base = r.base(psn)
		}
		e.acknowledge(h, r, f, base, ce)
	}
}

// acknowledge sends the acknowledgement of a data packet: cumulative, and a bitmap of 64 packets from base
// on.
func (e *engine) acknowledge(h *host, r *receiver, f *frame, base uint32, ce bool) {
	r.accepted = 0
	slot := r.slot()
	r.acks[slot] = ack{bitmap: r.bits(base), received: r.received, base: base, cumulative: r.expected}
	what := f.what&(pathBits|flagResent) | flagAck | control<<sizeAt | uint64(slot)<<slotAt
	if ce {
		what |= flagCE
	}
	e.answer(h, f.who|answer, what, f.at)
}

// slot returns a free slot, the one freed last, which is likely in the cache.
func (r *receiver) slot() uint16 {
	n := len(r.free)
	switch {
	case n > 0:
		v := r.free[n-1]
		r.free = r.free[:n-1]
		return v
	case len(r.acks) < mostAcks:
		r.acks = append(r.acks, ack{})
		return uint16(len(r.acks) - 1)
	}
	r.next++
	return r.next
}

// receiveHeader handles a trimmed packet: it answers with a NACK.
func (e *engine) receiveHeader(h *host, f *frame) {
	r := &e.rcv[f.flow()]
	if r.has(f.psn()) {
		e.again = max(e.again, f.at)
		accepted := r.accepted
		e.acknowledge(h, r, f, r.base(f.psn()), false)
		r.accepted = accepted
		return
	}
	e.answer(h, f.who|answer, f.what&(pathBits|flagLast|flagCE)|flagNack|control<<sizeAt, f.at)
}
