package cc

import "math/bits"

// Widths and units of INT's records (network/utils/int-header.h): 24 bits of
// nanoseconds, 20 of bytes sent, 17 of queue length.
const (
	intTime  = 1<<24 - 1
	intBytes = 1<<20 - 1
	intQueue = 1<<17 - 1
	byteUnit = 128
	qlenUnit = 80
	intHops  = 5
)

// intHop is what a switch writes into a data frame: a time, the bytes sent and the length of the
// queue in one word, from the lowest bit.
type intHop struct {
	word uint64
	rate int64
}

func (h *intHop) time() uint64  { return h.word & intTime }
func (h *intHop) bytes() uint64 { return h.word >> 24 & intBytes }
func (h *intHop) queue() uint64 { return h.word >> 44 }

// Telemetry is the state of HPCC (SIGCOMM'19) of a sender.
type Telemetry struct {
	hops   []intHop // records of frames in flight, by hop and frame number
	count  []uint8  // how many records a frame has, by number: a power of two
	update uint32   // the frame whose acknowledgement ends a round trip
	stage  int32
	util   float64           // smoothed utilisation
	rate   int64             // at the start of the round trip
	rtt    int64             // ns
	window int64             // bytes
	hop    [intHops]intHop   // of the acknowledgement before
	each   *[intHops]hopRate // with MultiRate
	again  uint32            // frames sent again so far: records are by psn plus that
}

// hopRate is the state of a hop where each has a rate of its own.
type hopRate struct {
	util  float64
	stage int32
	rate  int64
}

// NewTelemetry makes the state of a sender with a base round trip in ns, whose frames
// meet so many switches: there is room for a window of frames.
func NewTelemetry(c *Params, line, rtt, window int64, payload, switches int) *Telemetry {
	n := 4
	for int64(n-2)*int64(payload) < window {
		n *= 2
	}
	p := &Telemetry{hops: make([]intHop, n*min(max(1, switches), intHops)), count: make([]uint8, n), util: 1, rate: line, rtt: rtt, window: window}
	if c.MultiRate {
		p.each = new([intHops]hopRate)
		for i := range p.each {
			p.each[i] = hopRate{util: 1, rate: line}
		}
	}
	return p
}

// Stamp adds a switch's record to a data frame, by its number of records: the time in ns, the bytes that its
// port has sent and those that wait there, and its rate.
func (p *Telemetry) Stamp(c *Params, frame uint32, ns, sent, queued, rate int64) {
	k := int(frame) & (len(p.count) - 1)
	i := int(p.count[k]%intHops)*len(p.count) + k
	if p.count[k] = min(p.count[k]+1, 250); i >= len(p.hops) { // it goes another way, with more switches
		p.hops = append(p.hops, make([]intHop, intHops*len(p.count)-len(p.hops))...)
	}
	if m := c.Multi; m&(m-1) == 0 { // shifts: a division by a variable takes as long as all else here
		k := bits.TrailingZeros64(uint64(m)) & 63
		sent, queued = sent/byteUnit>>k, queued/qlenUnit>>k
	} else {
		sent, queued = sent/(byteUnit*m), queued/(qlenUnit*m)
	}
	p.hops[i] = intHop{uint64(ns)&intTime | uint64(sent)&intBytes<<24 | uint64(queued)&intQueue<<44, rate}
}

// Send clears the record of data frame psn, which is sent now, and returns its number: what was
// sent before under that psn may still be on its way to switches.
func (p *Telemetry) Send(psn uint32) uint32 {
	psn += p.again
	p.count[int(psn)&(len(p.count)-1)] = 0
	return psn
}

// Again says that so many frames are to be sent again, beside those on their way: there is
// room for a window of each.
func (p *Telemetry) Again(frames uint32) {
	if p.again += frames; p.again != frames {
		return
	}
	old, n := *p, len(p.count)
	p.count = append(old.count[:n:n], old.count...)
	p.hops = make([]intHop, 2*len(old.hops))
	for k := range uint32(2 * n) {
		for i := range len(old.hops) / n {
			*p.seen(k, i) = *old.seen(k, i)
		}
	}
}

// seen is the record of a hop of a frame.
func (p *Telemetry) seen(frame uint32, hop int) *intHop {
	if i := hop*len(p.count) + int(frame)&(len(p.count)-1); i < len(p.hops) {
		return &p.hops[i]
	}
	return &intHop{}
}

// Ack finds the rate after what frame saw on its way, and says whether it changes:
// frames below psn have arrived, next is sent next.
func (p *Telemetry) Ack(c *Params, s *Rate, frame, psn, next uint32) (rate int64, changes bool) {
	full := psn > p.update
	if !full && !c.FastReact {
		return 0, false
	}
	if p.update == 0 {
		p.update = next
		for i := range p.hop {
			p.hop[i] = *p.seen(frame, i)
		}
		return 0, false
	}
	switch n := int(p.count[int(frame)&(len(p.count)-1)]); {
	case n == 0 || n > intHops:
	case c.MultiRate:
		rate, changes = p.perHop(frame, n, s, c, full)
	default:
		u, dt, any := p.utilisation(frame, n, s, c, full)
		if !any {
			break
		}
		x := hopRate{p.util, p.stage, p.rate}
		var stage int32
		rate, stage = x.next(u, dt, p.rtt, s, c)
		p.util, changes = x.util, true
		if full {
			p.rate, p.stage = rate, stage
		}
	}
	if full {
		p.update = max(p.update, next)
	}
	return rate, changes
}

// next smooths the utilisation with what was measured over so many ns, and returns
// the rate and stage that follow.
func (x *hopRate) next(u float64, dt, rtt int64, s *Rate, c *Params) (int64, int32) {
	dt = min(dt, rtt)
	x.util = (float64(x.util*float64(rtt-dt)) + float64(u*float64(dt))) / float64(rtt)
	rate, stage := x.rate+c.AI, x.stage+1
	if over := x.util / c.Utilisation; over >= 1 || x.stage >= c.Stages {
		rate, stage = int64(float64(x.rate)/over)+c.AI, 0
	}
	return min(max(rate, c.MinRate), s.Line), stage
}

// perHop is the least of the rates of all hops.
func (p *Telemetry) perHop(frame uint32, n int, s *Rate, c *Params, full bool) (least int64, any bool) {
	least = s.Line
	for i := range n {
		x := &p.each[i]
		if c.SampleFeedback && p.seen(frame, i).queue() == 0 && !full {
			least = min(least, x.rate)
			continue
		}
		any = true
		u, dt := p.measure(p.seen(frame, i), i, s, c)
		rate, stage := x.next(u, dt, p.rtt, s, c)
		least = min(least, rate)
		if full {
			x.rate, x.stage = rate, stage
		}
	}
	return least, any
}

// utilisation returns the highest of the hops of a path, and over how many
// nanoseconds it was measured.
func (p *Telemetry) utilisation(frame uint32, n int, s *Rate, c *Params, full bool) (most float64, dt int64, any bool) {
	for i := range n {
		if c.SampleFeedback && p.seen(frame, i).queue() == 0 && !full {
			continue
		}
		any = true
		if u, tau := p.measure(p.seen(frame, i), i, s, c); u > most {
			most, dt = u, tau
		}
	}
	return most, dt, any
}

// measure is the utilisation of a hop since the acknowledgement before.
func (p *Telemetry) measure(now *intHop, i int, s *Rate, c *Params) (u float64, tau int64) {
	old := &p.hop[i]
	tau = int64((now.time() - old.time()) & intTime)
	sent := int64((now.bytes()-old.bytes())&intBytes) * byteUnit * c.Multi
	queue := int64(min(now.queue(), old.queue())) * qlenUnit * c.Multi
	u = float64(sent) * 8 / (float64(tau) * 1e-9) / float64(now.rate)
	if queue > 0 {
		u += float64(queue) * float64(s.Line) / float64(now.rate) / float64(p.window)
	}
	*old = *now
	return u, tau
}
