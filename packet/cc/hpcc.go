package cc

import (
	"math/bits"
	"slices"
)

// INT records are one word each (network/utils/int-header.h): from the lowest bit up 24 bits of nanoseconds,
// 20 of bytes sent, 17 of queue length, then a code of the link's rate.
const (
	intTime  = 1<<24 - 1
	intBytes = 1<<20 - 1
	intQueue = 1<<17 - 1

	bytesShift = 24
	queueShift = 44
	overQueue  = 64 - rateShift // bits above the queue length

	byteBits = 7
	byteUnit = 1 << byteBits
	qlenUnit = 80
	intHops  = 5
)

// Telemetry is HPCC's state of a sender (SIGCOMM'19). For routes over up to three switches, an
// acknowledgement touches the first cache line only.
type Telemetry struct {
	first  uint32 // first telemetry row of its frames in flight
	update uint32 // the frame whose acknowledgement ends the round trip
	stage  int32
	size   uint8           // log2 of its rows
	most   uint8           // log2 of the most rows that its window may need
	count  uint8           // records of the last acknowledged frame
	even   bool            // queue·line/line is exact in float64, so it can be left out
	rtt    int64           // ns
	util   float64         // smoothed utilization
	rate   int64           // bit/s at the start of the round trip
	last   [intHops]uint64 // INT words of the previous acknowledgement
	again  uint32          // retransmissions so far: rows are by psn + again
	_      uint32
	each   *[intHops]hopRate // by hop, with MultiRate
	_      [4]uint64         // whole lines of a cache
}

// shiftOf returns log2 of multi; 255: it is no power of two.
func shiftOf(multi int64) uint8 {
	if multi&(multi-1) != 0 {
		return 255
	}
	return uint8(bits.TrailingZeros64(uint64(multi)))
}

// hopRate is the state of one hop, with MultiRate.
type hopRate struct {
	util  float64
	stage int32
	rate  int64
}

// NewTelemetry returns the state of a sender with a base round trip in ns.
func NewTelemetry(c *Params, line, rtt int64) Telemetry {
	p := Telemetry{util: 1, rate: line, rtt: rtt}
	unit := uint64(qlenUnit * c.Multi)
	// number of significant bits
	odd := func(x uint64) int { return bits.Len64(x >> (bits.TrailingZeros64(x) & 63)) }
	p.even = bits.Len64(intQueue)+odd(unit)+odd(uint64(line)) <= 53
	if c.MultiRate {
		p.each = new([intHops]hopRate)
		for i := range p.each {
			p.each[i] = hopRate{util: 1, rate: line}
		}
	}
	return p
}

// Coded returns a link's rate in bit/s as INT carries it. ns-3 encodes it in three bits, and writes the code
// of 25 Gbit/s for each rate without a code (utils/int-header.h).
func (c *Params) Coded(rate int64) int64 {
	if known := [...]int64{50e9, 100e9, 200e9, 400e9}; !c.RateCodes || slices.Contains(known[:], rate) {
		return rate
	}
	return 25e9
}

// ack returns the rate after the acknowledgement of a frame that carried aux, and whether it changes. Frames
// below psn have arrived; next is the next frame to be sent.
func (p *Telemetry) ack(x *Flows, s *Rate, window int64, aux, psn, next uint32) (rate int64, changes bool) {
	update, c, hops := p.update, x.c, x.rows.hops(aux)
	full := psn > update
	if !c.FastReact && !full {
		return 0, false
	}
	if update == 0 {
		p.update = next
		clear(p.last[:])
		copy(p.last[:], hops)
		return 0, false
	}
	if full { // conditional moves: whether a round trip ends cannot be predicted
		update = max(update, next)
	}
	p.update = update
	if len(hops) == 0 {
		return 0, false
	}
	if c.MultiRate {
		return p.perHop(x, s, window, aux, hops, full)
	}
	u, dt, any := 0.0, int64(0), true
	if len(hops) > 1 || c.SampleFeedback {
		u, dt, any = p.utilisation(x, s, window, aux, hops, full)
	} else if now, tau := p.measure(x, hops[0], x.rows.rate(aux, hops[0], 0), &p.last[0], s, window); now >
		0 {
		u, dt = now, tau
	}
	if !any {
		return 0, false
	}
	h := hopRate{p.util, p.stage, p.rate}
	rate, stage := h.next(u, dt, p.rtt, s, c)
	if p.util = h.util; full {
		p.rate, p.stage = rate, stage
	}
	return rate, true
}

// next smooths the utilization with u, measured over dt ns, and returns the rate and stage that follow:
// additive steps below the target, at most Stages in a row, else rate·target/utilization.
func (x *hopRate) next(u float64, dt, rtt int64, s *Rate, c *Params) (int64, int32) {
	dt = min(dt, rtt)
	x.util = (float64(x.util*float64(rtt-dt)) + float64(u*float64(dt))) / float64(rtt)
	rate, stage := x.rate+c.AI, x.stage+1
	if x.util >= c.Utilisation || x.stage >= c.Stages { // the ratio, rounded, is 1 or more
		rate, stage = int64(float64(x.rate)/(x.util/c.Utilisation))+c.AI, 0
	}
	return min(max(rate, c.MinRate), s.Line), stage
}

// perHop returns the lowest of the hops' rates.
func (p *Telemetry) perHop(x *Flows, s *Rate, window int64, aux uint32, hops []uint64,
	full bool) (least int64, any bool) {
	least = s.Line
	for i, word := range hops {
		h := &p.each[i]
		if x.c.SampleFeedback && word>>queueShift&intQueue == 0 && !full {
			least = min(least, h.rate)
			continue
		}
		any = true
		u, dt := p.measure(x, word, x.rows.rate(aux, word, i), &p.last[i], s, window)
		rate, stage := h.next(u, dt, p.rtt, s, x.c)
		least = min(least, rate)
		if full {
			h.rate, h.stage = rate, stage
		}
	}
	return least, any
}

// utilisation returns the highest utilization of the hops, and the time in ns over which it was measured.
func (p *Telemetry) utilisation(x *Flows, s *Rate, window int64, aux uint32, hops []uint64,
	full bool) (most float64, dt int64, any bool) {
	before := p.last[:len(hops)]
	for i, word := range hops {
		if x.c.SampleFeedback && word>>queueShift&intQueue == 0 && !full {
			continue
		}
		any = true
		if u, tau := p.measure(x, word, x.rows.rate(aux, word, i), &before[i], s, window); u > most {
			most, dt = u, tau
		}
	}
	return most, dt, any
}

// measure returns a hop's utilization since the previous acknowledgement: throughput/rate + queue/window, and
// the time between the two records in ns.
func (p *Telemetry) measure(x *Flows, word uint64, bps int64, last *uint64, s *Rate, window int64) (u float64,
	tau int64) {
	old := *last
	*last = word
	tau = int64((word - old) & intTime)
	sent := float64(int64((word>>bytesShift-old>>bytesShift)&intBytes)) * x.bits
	queue := float64(int64(min(word<<overQueue, old<<overQueue)>>(overQueue+queueShift))) * x.unit
	rate := float64(bps)
	if !p.even || bps != s.Line {
		queue = queue * float64(s.Line) / rate
	}
	return sent/(float64(tau)*1e-9)/rate + queue/float64(window), tau
}
