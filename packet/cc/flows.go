package cc

import (
	"cmp"
	"fmt"

	"github.com/simccl/simccl/units"
)

// Flows is what senders know whose control is not DCQCN, by flow.
type Flows struct {
	// InOrder: no frame of a flow overtakes another, nor does an acknowledgement. Then a flow with HPCC has
	// no more rows for telemetry than it had frames in flight, so those of many flows fit into a cache.
	InOrder   bool
	c         *Params
	payload   int // bytes of a full frame
	header    int
	shift     uint8   // of HPCC's units
	bits      float64 // of the unit of bytes sent, with HPCC
	unit      float64 // bytes of that of queues
	telemetry []Telemetry
	rows      rows
	gradient  []Gradient
	share     []Share
	delay     []Delay
	windowed  []Windowed
}

// NewFlows makes room for n flows whose full frames have so many bytes of payload and
// header.
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

// Open begins a flow over so many links with a base round trip, of so many bytes if that is known, else 0.
// Error: *UnsupportedError, where frames in flight cannot be numbered.
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

// Full reports whether frames in flight cannot be numbered any more. Error: *UnsupportedError.
func (x *Flows) Full() error {
	if x.rows.full {
		return &UnsupportedError{What: "HPCC with more than 2^29 frames in flight",
			Found: fmt.Sprintf("%d flows with more", len(x.telemetry))}
	}
	return nil
}

// resize sets the window that a control found.
func (x *Flows) resize(id int32, s *Rate, window *int64) {
	switch x.c.Kind {
	case Swift:
		*window = x.delay[id].Window(x.c, s, x.payload, x.payload+x.header)
	case NSCC:
		*window = x.windowed[id].window(x.payload)
	}
}

// fewest is the size of rows with which a flow begins, as a power of two.
const fewest = 2

// room sets rows aside for so many bytes in flight that meet so many switches; with InOrder only a few at
// first.
func (x *Flows) room(p *Telemetry, bytes int64, switches int) {
	for p.most = fewest; int64(1<<p.most-2)*int64(x.payload) < bytes; {
		p.most++
	}
	if p.size = p.most; x.InOrder {
		p.size = fewest
	}
	p.first = x.rows.take(1<<p.size, switches)
}

// more sets more rows aside for a flow: as many as a power of two.
func (x *Flows) more(p *Telemetry, size uint8) {
	if first := x.rows.take(1<<size, 0); first > 0 { // else the rows that it has must do
		p.first, p.size = first, size
	}
}

// Grows reports whether a flow that sends a data frame needs more rows perhaps, with so many in flight
// before it: Grow does that.
func Grows(flight uint32) bool { return flight&(flight-1) == 0 && flight>>fewest != 0 }

// Grow makes room for one more data frame of a flow with HPCC than so many in flight.
func (x *Flows) Grow(id int32, flight uint32) {
	if p := &x.telemetry[id]; flight>>p.size != 0 && p.size < p.most {
		x.more(p, p.size+1)
	}
}

// Send is what data frame psn of a flow with HPCC carries, which is sent now: the number of its row. It is
// another one than that of a frame that was sent before under that psn: that may still be on its way.
func (x *Flows) Send(id int32, psn uint32) (aux uint32) {
	p := &x.telemetry[id]
	return p.first + (psn+p.again)&(1<<(p.size&31)-1)
}

// Stamp adds the record of a port of a rate to what a frame carries.
func (x *Flows) Stamp(aux uint32, word uint64, rate int64) uint32 {
	return x.rows.stamp(aux, word, rate)
}

// TouchRecords reads what Stamp will add to.
func (x *Flows) TouchRecords(aux uint32) uint32 { return x.rows.touch(aux) }

// Touch reads what Seen will look at.
func (x *Flows) Touch(id int32, aux uint32) uint32 {
	if x.c.Kind != HPCC {
		return 0
	}
	return x.telemetry[id].update + x.rows.touch(aux)
}

// Seen is the rate after what a frame of a flow with HPCC and a window saw on its way, and whether it
// changes. aux is what that frame carried or, if the acknowledgement reports one that came out of order, its
// psn; it met as many switches as the one before. Frames below psn have arrived, next is sent next.
func (x *Flows) Seen(id int32, s *Rate, window int64, aux uint32, report bool, psn, next uint32) (rate int64,
	changes bool) {
	p := &x.telemetry[id]
	if report {
		if p.again > 0 { // it does not say which of two that were sent came
			return 0, false
		}
		aux = x.Send(id, aux) | uint32(p.count)<<rowCount
	}
	p.count = uint8(aux >> rowCount)
	return p.ack(x, s, window, aux, psn, next)
}

// Gradient is TIMELY's state of a flow.
func (x *Flows) Gradient(id int32) *Gradient { return &x.gradient[id] }

// Share is DCTCP's state of a flow.
func (x *Flows) Share(id int32) *Share { return &x.share[id] }

// Record is what a switch writes into a data frame at a time in ps: its port has sent so many bytes, and so
// many wait there.
func (x *Flows) Record(at, sent, queued int64) uint64 {
	b, q := uint64(sent)>>byteBits, uint64(queued)/qlenUnit
	if k := x.shift & 31; k == x.shift { // a division by a variable takes as long as all else here
		b, q = b>>k, q>>k
	} else {
		b, q = b/uint64(x.c.Multi), q/uint64(x.c.Multi)
	}
	return uint64(at)/1000&intTime | b&intBytes<<24 | q&intQueue<<44
}

// Sent is what data frame psn, sent now (ps) with so many in flight before it, carries for its
// acknowledgement to bring back; 0 where that is nothing.
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

// Again reports whether so many frames are to be sent again from the first gap on; it returns them.
func (x *Flows) Again(id int32, frames int64) int64 {
	if x.c.Kind != HPCC || frames <= 0 {
		return frames
	}
	p := &x.telemetry[id]
	if p.again += uint32(frames); p.again == uint32(frames) { // room for a window that was sent before, too
		p.most++
		x.more(p, p.most)
	}
	return frames
}

// Ack is what an acknowledgement says.
type Ack struct {
	Now       int64  // ps
	Aux       uint32 // what Sent returned for the frame it answers, or what switches made of it
	Psn, Next uint32 // frames below Psn have arrived, Next is sent next
	Acked     uint32 // frames that have arrived since the one before
	Flight    uint32 // frames
	Marked    bool
	Gap       bool // it asks for a frame that is missing
	Report    bool // it reports frame Aux, which came out of order, and has no time
	Each      bool // each frame has an acknowledgement of its own
}

// rtt is the round trip of an acknowledgement, in ns.
func (a *Ack) rtt() int64 { return int64(uint32(a.Now/1000) - a.Aux) }

// Ack lets the control see an acknowledgement. Where shift is true the rate is to
// become the one returned, and the next frame to move with it.
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

// ultra lets NSCC see an acknowledgement, also of a frame out of order.
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

// Loss lets Swift and NSCC see a loss: a gap that was reported, or the last of so many
// timeouts in a row. Others do not mind.
func (x *Flows) Loss(id int32, s *Rate, window *int64, now int64, flight uint32, timeouts int32) {
	switch x.c.Kind {
	case NSCC:
		x.windowed[id].Loss(now, int64(flight)*int64(x.payload+x.header), timeouts > 0)
	case Swift:
		x.delay[id].Loss(&x.c.Swift, now, timeouts)
	}
	x.resize(id, s, window)
}
