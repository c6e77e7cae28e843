package packet

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

// intHop is what a switch writes into a data frame.
type intHop struct {
	time, bytes, queue uint32
	rate               int64
}

// intRecord is the records of a frame.
type intRecord struct {
	n   int
	hop [intHops]intHop
}

// hpcc is the state of HPCC (SIGCOMM'19) of a sender. Records of frames in
// flight are in ring, by frame number.
type hpcc struct {
	ring   []intRecord
	hop    [intHops]intHop // of the acknowledgement before
	update uint32          // the frame whose acknowledgement ends a round trip
	stage  int32
	util   float64          // smoothed utilisation
	rate   int64            // at the start of the round trip
	rtt    int64            // ns
	each   [intHops]hopRate // with MultiRate
}

// hopRate is the state of a hop where each has a rate of its own.
type hopRate struct {
	util  float64
	stage int32
	rate  int64
}

// newHPCC makes the state of a sender: the ring holds a window of frames.
func (e *engine) newHPCC(s *sender, rtt int64) *hpcc {
	n := 4
	for int64(n-2)*int64(e.cfg.Frames.Payload) < s.window {
		n *= 2
	}
	p := &hpcc{ring: make([]intRecord, n), util: 1, rate: s.Line, rtt: rtt}
	for i := range p.each {
		p.each[i] = hopRate{util: 1, rate: s.Line}
	}
	return p
}

// stamp adds a switch's record to a data frame that it starts.
func (e *engine) stamp(l *link, f *frame, at int64) {
	p := e.hp[f.flow]
	r := &p.ring[int(f.psn)&(len(p.ring)-1)]
	var queued int64
	for i := range l.q {
		queued += l.q[i].bytes
	}
	m := e.cfg.CC.Multi
	r.hop[r.n%intHops] = intHop{uint32(at/1000) & intTime, uint32(l.txBytes/(byteUnit*m)) & intBytes, uint32(queued/(qlenUnit*m)) & intQueue, l.rate}
	r.n++
}

// hpccAck adjusts the rate to what the frame of an acknowledgement saw.
func (e *engine) hpccAck(h *host, f *frame, s *sender) {
	p, c := e.hp[f.flow], &e.cfg.CC
	r := &p.ring[int(f.aux)&(len(p.ring)-1)]
	full := f.psn > p.update
	if !full && !c.FastReact {
		return
	}
	if p.update == 0 {
		p.update = s.nxt
		p.hop = r.hop
		return
	}
	switch {
	case r.n == 0 || r.n > intHops:
	case c.MultiRate:
		if rate, any := p.perHop(r, s, c, full); any {
			e.shift(h, s, rate, f.at)
		}
	default:
		u, dt, any := p.utilisation(r, s, c, full)
		if !any {
			break
		}
		x := hopRate{p.util, p.stage, p.rate}
		rate, stage := x.next(u, dt, p.rtt, s, c)
		p.util = x.util
		e.shift(h, s, rate, f.at)
		if full {
			p.rate, p.stage = rate, stage
		}
	}
	if full {
		p.update = max(p.update, s.nxt)
	}
}

// next smooths the utilisation with what was measured over so many ns, and returns
// the rate and stage that follow.
func (x *hopRate) next(u float64, dt, rtt int64, s *sender, c *CC) (int64, int32) {
	dt = min(dt, rtt)
	x.util = (float64(x.util*float64(rtt-dt)) + float64(u*float64(dt))) / float64(rtt)
	rate, stage := x.rate+c.AI, x.stage+1
	if over := x.util / c.Utilisation; over >= 1 || x.stage >= c.Stages {
		rate, stage = int64(float64(x.rate)/over)+c.AI, 0
	}
	return min(max(rate, c.MinRate), s.Line), stage
}

// perHop is the least of the rates of all hops.
func (p *hpcc) perHop(r *intRecord, s *sender, c *CC, full bool) (least int64, any bool) {
	least = s.Line
	for i := range r.n {
		x := &p.each[i]
		if c.SampleFeedback && r.hop[i].queue == 0 && !full {
			least = min(least, x.rate)
			continue
		}
		any = true
		u, dt := p.measure(r, i, s, c)
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
func (p *hpcc) utilisation(r *intRecord, s *sender, c *CC, full bool) (most float64, dt int64, any bool) {
	for i := range r.n {
		if c.SampleFeedback && r.hop[i].queue == 0 && !full {
			continue
		}
		any = true
		if u, tau := p.measure(r, i, s, c); u > most {
			most, dt = u, tau
		}
	}
	return most, dt, any
}

// measure is the utilisation of a hop since the acknowledgement before.
func (p *hpcc) measure(r *intRecord, i int, s *sender, c *CC) (u float64, tau int64) {
	now, old := &r.hop[i], &p.hop[i]
	tau = int64((now.time - old.time) & intTime)
	sent := int64((now.bytes-old.bytes)&intBytes) * byteUnit * c.Multi
	queue := int64(min(now.queue, old.queue)) * qlenUnit * c.Multi
	u = float64(sent)*8/(float64(tau)*1e-9)/float64(now.rate) + float64(queue)*float64(s.Line)/float64(now.rate)/float64(s.window)
	*old = *now
	return u, tau
}

// shift changes the rate, and the time of the next frame by the difference of
// the gaps.
func (e *engine) shift(h *host, s *sender, rate, now int64) {
	size := int(s.last)
	s.nextAvail += e.lasts(size, rate) - e.lasts(size, s.Rate.Rate)
	s.Set(rate)
	if h.wake > now && s.nextAvail < h.wake {
		h.wake = max(s.nextAvail, now)
	}
}
