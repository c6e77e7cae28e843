package cc

import (
	"cmp"
	"fmt"

	"github.com/simccl/simccl/units"
)

// Flows is the congestion-control state of all flows. DCQCN is the exception: its Reaction is in the queue
// pair.
type Flows struct {
	// InOrder: frames and acknowledgements of a flow never overtake each other. Then HPCC keeps only as many
	// telemetry rows per flow as frames are in flight, and the rows stay in the cache.
	InOrder   bool
	c         *Params
	payload   int // bytes of a full frame
	header    int
	shift     uint8   // log2 of Params.Multi; 255: it is no power of two
	bits      float64 // HPCC: bits per unit of bytes sent
	unit      float64 // HPCC: bytes per unit of queue length
	telemetry []Telemetry
	rows      rows
	gradient  []Gradient
	share     []Share
	delay     []Delay
	windowed  []Windowed
}

// NewFlows makes the state of n flows whose full frames have the given payload and header bytes.
func NewFlows(c *Params, n, payload, header int) Flows {
	x := Flows{c: c, payload: payload, header: header}
	switch c.Kind {
	case HPCC:
		x.telemetry = make([]Telemetry, n)
		x.shift, x.bits, x.unit = shiftOf(c.Multi), float64(8*byteUnit*c.Multi), float64(qlenUnit*c.Multi)
	case Timely:
		x.gradient = make([]Gradient, n)
	case DCTCP:
		x.share = make([]Share, n)
	case Swift:
		x.delay = make([]Delay, n)
	case NSCC:
		x.windowed = make([]Windowed, n)
	}
	return x
}

// Open starts a flow over the given number of links with base round trip rtt; bytes is the flow's size (0:
// unknown). Error: *UnsupportedError if telemetry rows run out.
func (x *Flows) Open(id int32, s *Rate, window *int64, rtt units.Time, links int, bytes int64) error {
	switch x.c.Kind {
	case HPCC:
		x.telemetry[id] = NewTelemetry(x.c, s.Line, int64(rtt/units.Nanosecond))
		x.room(&x.telemetry[id], min(*window, cmp.Or(bytes, *window)), links-1)
	case Timely:
		x.gradient[id] = NewGradient(s.Line)
	case DCTCP:
		x.share[id] = NewShare(x.payload, bytes)
	case NSCC:
		x.windowed[id] = NewWindowed(int64(rtt), s.Line, x.payload+x.header, x.header)
	case Swift:
		x.delay[id] = NewDelay(&x.c.Swift, links-1)
	}
	x.resize(id, s, window)
	return x.Full()
}

// Full returns an *UnsupportedError once telemetry rows have run out.
func (x *Flows) Full() error {
	if x.rows.full {
		return &UnsupportedError{What: "HPCC with more than 2^29 frames in flight",
			Found: fmt.Sprintf("%d flows with more", len(x.telemetry))}
	}
	return nil
}

// resize sets *window to the window that Swift or NSCC has computed.
func (x *Flows) resize(id int32, s *Rate, window *int64) {
	switch x.c.Kind {
	case Swift:
		*window = x.delay[id].Window(x.c, s, x.payload, x.payload+x.header)
	case NSCC:
		*window = x.windowed[id].window(x.payload)
	}
}

// fewest is log2 of the rows with which a flow starts.
const fewest = 2

// room reserves telemetry rows for the given bytes in flight over a number of switches; with InOrder only
// 2^fewest, which Grow doubles as needed.
func (x *Flows) room(p *Telemetry, bytes int64, switches int) {
	for p.most = fewest; int64(1<<p.most-2)*int64(x.payload) < bytes; {
		p.most++
	}
	if p.size = p.most; x.InOrder {
		p.size = fewest
	}
	p.first = x.rows.take(1<<p.size, switches)
}

// more gives a flow 2^size new telemetry rows.
func (x *Flows) more(p *Telemetry, size uint8) {
	if first := x.rows.take(1<<size, 0); first > 0 { // else the flow keeps its present rows
		p.first, p.size = first, size
	}
}

// Grows reports whether a flow with this many frames in flight may need more rows to send another: the caller
// then calls Grow. It is true only at powers of two.
func Grows(flight uint32) bool { return flight&(flight-1) == 0 && flight>>fewest != 0 }

// Grow doubles a flow's rows if another frame in flight needs it.
func (x *Flows) Grow(id int32, flight uint32) {
	if p := &x.telemetry[id]; flight>>p.size != 0 && p.size < p.most {
		x.more(p, p.size+1)
	}
}

// Send returns the number of a data frame's telemetry row, which the frame carries. A retransmission uses
// another row than the first transmission, which may still be in flight.
func (x *Flows) Send(id int32, psn uint32) (aux uint32) {
	p := &x.telemetry[id]
	return p.first + (psn+p.again)&(1<<(p.size&31)-1)
}

// Stamp adds a port's record to the row that aux identifies and returns the frame's new aux.
func (x *Flows) Stamp(aux uint32, word uint64, rate int64) uint32 {
	return x.rows.stamp(aux, word, rate)
}

// TouchRecords reads the row that Stamp will write (prefetch).
func (x *Flows) TouchRecords(aux uint32) uint32 { return x.rows.touch(aux) }

// Touch reads the memory that Seen will read (prefetch).
func (x *Flows) Touch(id int32, aux uint32) uint32 {
	if x.c.Kind != HPCC {
		return 0
	}
	return x.telemetry[id].update + x.rows.touch(aux)
}

// Seen returns HPCC's rate after an acknowledgement, and whether it changes. aux is the value that the
// acknowledged frame carried or, with report, the number of a frame that arrived out of order, which crossed
// as many switches as the frame before. Frames below psn have arrived; next is the next frame to be sent.
func (x *Flows) Seen(id int32, s *Rate, window int64, aux uint32, report bool, psn, next uint32) (rate int64,
	changes bool) {
	p := &x.telemetry[id]
	if report {
		if p.again > 0 { // the report does not say which of two transmissions arrived
			return 0, false
		}
		aux = x.Send(id, aux) | uint32(p.count)<<rowCount
	}
	p.count = uint8(aux >> rowCount)
	return p.ack(x, s, window, aux, psn, next)
}

// Gradient returns a flow's TIMELY state, for hosts that update it directly instead of by Ack.
func (x *Flows) Gradient(id int32) *Gradient { return &x.gradient[id] }

// Share returns a flow's DCTCP state, for hosts that update it directly instead of by Ack.
func (x *Flows) Share(id int32) *Share { return &x.share[id] }

// Record packs a switch's INT record: time in ps, bytes that the port has sent, and bytes queued.
func (x *Flows) Record(at, sent, queued int64) uint64 {
	b, q := uint64(sent)>>byteBits, uint64(queued)/qlenUnit
	if k := x.shift & 31; k == x.shift { // a division by a variable takes as long as the rest of the function
		b, q = b>>k, q>>k
	} else {
		b, q = b/uint64(x.c.Multi), q/uint64(x.c.Multi)
	}
	return uint64(at)/1000&intTime | b&intBytes<<24 | q&intQueue<<44
}

// Sent returns the aux value of data frame psn, which its acknowledgement returns; 0: none. now is in ps;
// flight is the number of frames in flight before it.
func (x *Flows) Sent(id int32, psn, flight uint32, now int64) (aux uint32) {
	switch x.c.Kind {
	case HPCC:
		if Grows(flight) {
			x.Grow(id, flight)
		}
		return x.Send(id, psn)
	case NSCC:
		x.windowed[id].note(psn, now)
		return uint32(now / 1000)
	case Timely, Swift:
		return uint32(now / 1000)
	}
	return 0
}

// Again records that frames are retransmitted from the first gap on, and returns frames. HPCC reserves rows
// for them, as the first transmissions may still be in flight.
func (x *Flows) Again(id int32, frames int64) int64 {
	if x.c.Kind != HPCC || frames <= 0 {
		return frames
	}
	p := &x.telemetry[id]
	if p.again += uint32(frames); p.again == uint32(frames) { // room also for the window that was sent before
		p.most++
		x.more(p, p.most)
	}
	return frames
}

// Ack is the part of an acknowledgement that congestion control reads.
type Ack struct {
	Now       int64  // ps
	Aux       uint32 // the value that Sent returned for its frame, as changed by switches
	Psn, Next uint32 // frames below Psn have arrived; Next is sent next
	Acked     uint32 // frames newly acknowledged
	Flight    uint32 // frames in flight
	Marked    bool
	Gap       bool // a NAK
	Report    bool // selective: frame Aux arrived out of order; there is no send time
	Each      bool // each frame is acknowledged on its own
}

// rtt returns the round trip in ns.
func (a *Ack) rtt() int64 { return int64(uint32(a.Now/1000) - a.Aux) }

// Ack updates a flow by an acknowledgement. If shift is true, the caller sets the returned rate and moves the
// start of the next frame accordingly.
func (x *Flows) Ack(id int32, s *Rate, window *int64, a *Ack) (rate int64, shift bool) {
	switch {
	case x.c.Kind == HPCC:
		return x.Seen(id, s, *window, a.Aux, a.Report, a.Psn, a.Next)
	case x.c.Kind == DCTCP:
		x.share[id].Ack(x.c, s, a.Psn, a.Next, a.Marked)
	case x.c.Kind == Timely && !a.Report:
		x.gradient[id].Ack(x.c, s, a.Psn, a.Next, a.rtt())
	case a.Gap:
		x.Loss(id, s, window, a.Now, a.Flight, 0)
	case x.c.Kind == NSCC:
		x.ultra(id, s, window, a)
	case a.Report:
	case x.c.Kind == Swift:
		x.delay[id].Ack(&x.c.Swift, a.Now, 1000*a.rtt(), a.Acked)
		x.resize(id, s, window)
	}
	return 0, false
}

// ultra updates NSCC. The send time for selective acknowledgements is looked up, as they carry none.
func (x *Flows) ultra(id int32, s *Rate, window *int64, a *Ack) {
	w, acked, rtt := &x.windowed[id], a.Acked, 1000*a.rtt()
	if a.Each {
		acked = 1
	}
	if a.Report {
		at, known := w.noted(a.Aux)
		if !known {
			return
		}
		rtt = a.Now - at
	}
	frame := int64(x.payload + x.header)
	w.Ack(a.Now, rtt, int64(acked)*frame, int64(a.Flight)*frame, a.Marked)
	x.resize(id, s, window)
}

// Loss reports a loss to Swift and NSCC: a gap (timeouts 0), or the given number of timeouts in a row. Other
// algorithms ignore it.
func (x *Flows) Loss(id int32, s *Rate, window *int64, now int64, flight uint32, timeouts int32) {
	switch x.c.Kind {
	case NSCC:
		x.windowed[id].Loss(now, int64(flight)*int64(x.payload+x.header), timeouts > 0)
	case Swift:
		x.delay[id].Loss(&x.c.Swift, now, timeouts)
	}
	x.resize(id, s, window)
}
