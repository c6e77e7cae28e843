package cc

import "math/bits"

// Ultra holds the constants of NSCC, the sender-based congestion control of Ultra Ethernet, scaled from 100
// Gb/s and 12 µs (htsim, sim/uec.cpp, initNsccParams). Times are in ps.
type Ultra struct {
	rtt        int64
	rate       int64
	mtu        int64
	target     int64 // queueing delay
	alpha      float64
	fair       float64 // fair increase
	fast       float64 // share of the acknowledged bytes that a fast increase adds
	eta        float64 // bytes added each round trip
	adjust     int64   // acknowledged bytes after which increases take effect
	bdp        int64
	gateShift  uint  // quick adapt acts when less than window >> gateShift was achieved
	gate       int64 // or above this delay
	delayAlpha float64
	gamma      float64
}

// Reference points of the scaling, and the delay below which increases are fast.
const (
	referenceRTT  = 12_000_000
	referenceBDP  = 150_000
	nearlyNothing = 1_000_000 // ps of queueing delay
)

// NewUltra scales the constants to a base round trip (ps), a line rate (bit/s) and frames of mtu bytes
// including header bytes.
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

// Windowing is NSCC's state of a sender. Windows are in bytes, times in ps.
type Windowing struct {
	Cwnd, most   int64  // window, and its upper bound
	base         int64  // least round trip seen
	Average      int64  // smoothed queueing delay
	achieved     int64  // bytes received in this period of quick adapt
	counted      int64  // bytes acknowledged since the last adjustment
	ignored      uint32 // bytes of acknowledgements ignored since quick adapt, of toIgnore
	toIgnore     uint32
	increase     uint32 // pending increase, in bytes · window
	fast         uint32 // bytes acknowledged without a queue
	adjustedAt   int64
	decreasedAt  int64
	lookAt       int64 // end of the period of quick adapt
	rising, lost bool
}

// Fresh returns the state at the start of a flow: the largest window.
func (n *Ultra) Fresh() Windowing {
	most := int64(1.5 * float64(n.bdp))
	return Windowing{Cwnd: most, most: most, base: n.rtt}
}

// Credit counts newly acknowledged bytes.
func (c *Windowing) Credit(bytes int64) {
	c.achieved += bytes
	c.counted += bytes
	c.ignored += uint32(bytes)
}

// Base lowers the base round trip (ps) if rtt is shorter, and with it the largest window.
func (n *Ultra) Base(c *Windowing, rtt int64) {
	if rtt < c.base {
		c.base = rtt
		c.most = int64(1.5 * float64(int64(float64(rtt)/1e6*float64(n.rate)/8_000_000)))
	}
}

// Sample adds a round trip to the average and returns its queueing delay.
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

// bound clamps the window. In htsim the upper bound wins, even below a full frame where the round trip of a
// small frame is short: such a sender never retransmits a full frame. Here the lower bound wins.
func (n *Ultra) bound(c *Windowing) { c.Cwnd = max(min(c.Cwnd, c.most), n.mtu) }

// wrapped returns a sum in htsim's 32 bits; the conversion by way of 64 bits gives the same result on all
// processors.
func wrapped(sum float64) uint32 { return uint32(int64(sum)) }

// quickAdapt sets the window to the bytes achieved in a period with losses or very long delays. It returns
// true if the window must not be adjusted otherwise now.
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

// Acknowledged adjusts the window to an acknowledgement by one of four cases: marked or not, delay below
// target or not.
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

// proportional increases the window in proportion to the target minus the delay, or fast once a whole window
// saw no queue.
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

// decrease lowers the window, once a round trip, in proportion to the average delay above the target.
func (n *Ultra) decrease(c *Windowing, now int64) {
	c.rising, c.fast = false, 0
	if c.Average > n.target && now-c.decreasedAt > c.base {
		keep := max(1-float64(n.gamma*float64(c.Average-n.target))/float64(c.Average), 0.5)
		c.Cwnd = max(int64(float64(c.Cwnd)*keep), n.mtu)
		c.decreasedAt = now
	}
}

// Refused adjusts the window to a trimmed packet.
func (n *Ultra) Refused(c *Windowing, bytes, flight, now int64) {
	c.ignored += uint32(bytes)
	n.smooth(c, c.base+n.rtt, true)
	c.lost = true
	if !n.quickAdapt(c, true, true, 0, flight, now) {
		c.Cwnd -= bytes
		n.bound(c)
	}
}

// Windowed is NSCC for a sender of package packet. Frames count with their headers.
type Windowed struct {
	Ultra
	Windowing
	sent []departure // send times of the last frames: a ring of a power of two
}

// departure is a frame's send time in ps, with its number to detect overwritten entries.
type departure struct {
	at  int64
	psn uint32
}

// note records a frame's send time in ps.
func (w *Windowed) note(psn uint32, at int64) {
	w.sent[psn&uint32(len(w.sent)-1)] = departure{at, psn}
}

// noted returns a frame's send time in ps; known is false if it was overwritten.
func (w *Windowed) noted(psn uint32) (at int64, known bool) {
	d := &w.sent[psn&uint32(len(w.sent)-1)]
	return d.at, d.psn == psn && d.at > 0
}

// NewWindowed returns the state of a flow at its start; see NewUltra for the arguments.
func NewWindowed(rtt, rate int64, mtu, header int) Windowed {
	w := Windowed{Ultra: NewUltra(rtt, rate, mtu, header)}
	w.Windowing = w.Fresh()
	w.sent = make([]departure, 1<<bits.Len64(uint64(4*w.most/w.mtu)))
	return w
}

// window returns the payload bytes that may be in flight.
func (w *Windowed) window(payload int) int64 { return max(1, w.Cwnd*int64(payload)/w.mtu) }

// Ack adjusts the window to an acknowledgement of the given bytes after a round trip of rtt ps.
func (w *Windowed) Ack(now, rtt, bytes, flight int64, marked bool) {
	w.Credit(bytes)
	delay := w.Sample(&w.Windowing, rtt, marked)
	w.Acknowledged(&w.Windowing, marked, delay, bytes, flight, now)
}

// Loss removes a frame from the window: a trimmed one, or one whose timeout has expired.
func (w *Windowed) Loss(now, flight int64, expired bool) {
	if expired {
		w.Cwnd = max(w.Cwnd-w.mtu, w.mtu)
		return
	}
	w.Refused(&w.Windowing, w.mtu, flight, now)
}
