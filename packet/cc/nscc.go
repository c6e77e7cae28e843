package cc

import "math/bits"

// Ultra has the constants of NSCC, the congestion control of Ultra Ethernet's senders,
// scaled from 100 Gb/s and 12 µs (htsim, sim/uec.cpp, initNsccParams). Times in ps.
type Ultra struct {
	rtt        int64
	rate       int64
	mtu        int64
	target     int64 // queueing delay
	alpha      float64
	fair       float64 // fair increase
	fast       float64 // share of acknowledged bytes in a fast increase
	eta        float64 // bytes a round trip
	adjust     int64   // bytes after which increases take effect
	bdp        int64
	gateShift  uint  // quick adapt below this share of the window
	gate       int64 // or beyond this delay
	delayAlpha float64
	gamma      float64
}

// Reference points of the scaling.
const (
	referenceRTT  = 12_000_000
	referenceBDP  = 150_000
	nearlyNothing = 1_000_000 // a queueing delay below which increases are fast
)

// NewUltra scales the constants to a base round trip of so many ps, a line of rate bit/s
// and frames of mtu bytes, of which header are no payload.
func NewUltra(rtt, rate int64, mtu, header int) Ultra {
	bdp := int64(float64(rtt) / 1e12 * float64(rate/8))
	mss := float64(mtu - header)
	n := Ultra{rtt: rtt, rate: rate, mtu: int64(mtu), target: int64(float64(rtt) * 0.75), bdp: bdp,
		gateShift: 3, delayAlpha: 0.0125, gamma: 0.8, adjust: 8 * int64(mtu)}
	a, b := float64(bdp)/referenceBDP, float64(n.target)/referenceRTT
	n.alpha = 4 * mss * a * b / float64(n.target)
	n.fair, n.eta, n.fast = 5*mss*a, 0.15*mss*a, 0.25*a
	n.gate = 4 * n.target
	return n
}

// Windowing is the state of a sender with NSCC.
type Windowing struct {
	Cwnd, most   int64 // bytes
	base         int64 // least round trip seen
	Average      int64 // queueing delay
	achieved     int64 // bytes received since the last look
	counted      int64 // bytes acknowledged since the last adjustment
	ignored      uint32
	toIgnore     uint32
	increase     uint32 // bytes, times the window
	fast         uint32 // bytes acknowledged without a queue
	adjustedAt   int64
	decreasedAt  int64
	lookAt       int64 // end of the period of quick adapt
	rising, lost bool
}

// Fresh is the state at the start of a flow: the largest window.
func (n *Ultra) Fresh() Windowing {
	most := int64(1.5 * float64(n.bdp))
	return Windowing{Cwnd: most, most: most, base: n.rtt}
}

// Credit counts bytes that the receiver says it has.
func (c *Windowing) Credit(bytes int64) {
	c.achieved += bytes
	c.counted += bytes
	c.ignored += uint32(bytes)
}

// Base lowers the base round trip, and with it the largest window.
func (n *Ultra) Base(c *Windowing, rtt int64) {
	if rtt < c.base {
		c.base = rtt
		c.most = int64(1.5 * float64(int64(float64(rtt)/1e6*float64(n.rate)/8_000_000)))
	}
}

// Sample takes a round trip into the average and returns its queueing delay.
func (n *Ultra) Sample(c *Windowing, rtt int64, ce bool) int64 {
	n.Base(c, rtt)
	n.smooth(c, rtt, ce)
	return rtt - c.base
}

func (n *Ultra) smooth(c *Windowing, rtt int64, ce bool) {
	delay := float64(rtt - c.base)
	if !ce && rtt-c.base > n.target {
		delay = float64(c.base) * 0.25
	}
	c.Average = int64(float64(n.delayAlpha*delay) + float64((1-n.delayAlpha)*float64(c.Average)))
}

// bound keeps the window in its bounds. htsim lets the upper one prevail, which falls below a full frame
// where the round trip of a small frame is short: a sender that has a full one to retransmit then never does.
func (n *Ultra) bound(c *Windowing) { c.Cwnd = max(min(c.Cwnd, c.most), n.mtu) }

// wrapped is a sum of bytes in the 32 bits in which htsim has it. By way of 64 bits it is the same on each
// processor.
func wrapped(sum float64) uint32 { return uint32(int64(sum)) }

// quickAdapt sets the window to what was achieved in a period with losses or
// very long delays. It reports whether nothing else is to be adjusted.
func (n *Ultra) quickAdapt(c *Windowing, loss, skip bool, delay, flight, now int64) bool {
	done := false
	if c.ignored < c.toIgnore && skip {
		done = true
	} else if now > c.lookAt {
		if c.lookAt != 0 && (c.lost || loss || delay > n.gate) && c.achieved < c.most>>n.gateShift {
			c.Cwnd = max(c.achieved, n.mtu)
			c.toIgnore, c.ignored = uint32(flight), 0
			c.lost = false
			done = true
		}
		c.achieved = 0
		c.lookAt = now + c.base + n.target
	}
	if done {
		c.increase, c.counted = 0, 0
	}
	return done
}

// Acknowledged adjusts the window to an acknowledgement of so many bytes.
func (n *Ultra) Acknowledged(c *Windowing, ce bool, delay, bytes, flight, now int64) {
	if n.quickAdapt(c, false, ce, delay, flight, now) {
		return
	}
	switch {
	case !ce && delay >= n.target:
		c.increase = wrapped(float64(c.increase) + float64(n.fair*float64(bytes)))
	case !ce:
		n.proportional(c, delay, bytes)
	case delay >= n.target:
		n.decrease(c, now)
	}
	n.bound(c)
	if c.counted > n.adjust || now-c.adjustedAt > n.rtt {
		c.Cwnd += int64(c.increase) / c.Cwnd
		if now-c.adjustedAt >= n.rtt {
			c.Cwnd = int64(float64(c.Cwnd) + n.eta)
			c.adjustedAt = now
		}
		c.increase, c.counted = 0, 0
	}
	n.bound(c)
}

// proportional increases by how far the delay is below its target, or fast
// where a whole window saw no queue.
func (n *Ultra) proportional(c *Windowing, delay, bytes int64) {
	if delay < nearlyNothing {
		c.fast += uint32(bytes)
		if int64(c.fast) > c.Cwnd || c.rising {
			c.Cwnd = int64(float64(c.Cwnd) + float64(float64(bytes)*n.fast))
			c.rising = true
			return
		}
	} else {
		c.fast = 0
	}
	c.rising = false
	c.increase = wrapped(float64(c.increase) + float64(n.alpha*float64(bytes)*float64(n.target-delay)))
}

// decrease lowers the window once a round trip by how far the average delay is
// beyond its target.
func (n *Ultra) decrease(c *Windowing, now int64) {
	c.rising, c.fast = false, 0
	if c.Average > n.target && now-c.decreasedAt > c.base {
		keep := max(1-float64(n.gamma*float64(c.Average-n.target))/float64(c.Average), 0.5)
		c.Cwnd = max(int64(float64(c.Cwnd)*keep), n.mtu)
		c.decreasedAt = now
	}
}

// Refused adjusts the window to a packet that was trimmed.
func (n *Ultra) Refused(c *Windowing, bytes, flight, now int64) {
	c.ignored += uint32(bytes)
	n.smooth(c, c.base+n.rtt, true)
	c.lost = true
	if !n.quickAdapt(c, true, true, 0, flight, now) {
		c.Cwnd -= bytes
		n.bound(c)
	}
}

// Windowed is a sender with NSCC and the constants of its route. Frames count with
// their headers.
type Windowed struct {
	Ultra
	Windowing
	sent []departure // of the frames sent last, by number: a power of two
}

// departure is when a frame was sent.
type departure struct {
	at  int64
	psn uint32
}

// note keeps when a frame is sent.
func (w *Windowed) note(psn uint32, at int64) {
	w.sent[psn&uint32(len(w.sent)-1)] = departure{at, psn}
}

// noted is when a frame was sent; known is false where that was long ago.
func (w *Windowed) noted(psn uint32) (at int64, known bool) {
	d := &w.sent[psn&uint32(len(w.sent)-1)]
	return d.at, d.psn == psn && d.at > 0
}

// NewWindowed is the state of a sender, as NewUltra has it.
func NewWindowed(rtt, rate int64, mtu, header int) Windowed {
	w := Windowed{Ultra: NewUltra(rtt, rate, mtu, header)}
	w.Windowing = w.Fresh()
	w.sent = make([]departure, 1<<bits.Len64(uint64(4*w.most/w.mtu)))
	return w
}

// window is how much payload may be in flight.
func (w *Windowed) window(payload int) int64 { return max(1, w.Cwnd*int64(payload)/w.mtu) }

// Ack lets an acknowledgement of so many bytes move the window, after a round trip of
// rtt ps.
func (w *Windowed) Ack(now, rtt, bytes, flight int64, marked bool) {
	w.Credit(bytes)
	delay := w.Sample(&w.Windowing, rtt, marked)
	w.Acknowledged(&w.Windowing, marked, delay, bytes, flight, now)
}

// Loss takes a frame out of the window: one that was refused, or one whose timeout
// has expired.
func (w *Windowed) Loss(now, flight int64, expired bool) {
	if expired {
		w.Cwnd = max(w.Cwnd-w.mtu, w.mtu)
		return
	}
	w.Refused(&w.Windowing, w.mtu, flight, now)
}
