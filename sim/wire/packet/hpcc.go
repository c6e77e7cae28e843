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
	util   float64 // smoothed utilisation
	rate   int64   // at the start of the round trip
	rtt    int64   // ns
}

// newHPCC makes the state of a sender: the ring holds a window of frames.
func (e *engine) newHPCC(s *sender, rtt int64) *hpcc {
	n := 4
	for int64(n-2)*int64(e.cfg.Frames.Payload) < s.window {
		n *= 2
	}
	return &hpcc{ring: make([]intRecord, n), util: 1, rate: s.line, rtt: rtt}
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
	if r.n > 0 && r.n <= intHops {
		u, dt := p.utilisation(r, s, c)
		dt = min(dt, p.rtt)
		p.util = (float64(p.util*float64(p.rtt-dt)) + float64(u*float64(dt))) / float64(p.rtt)
		rate, stage := p.rate+c.AI, p.stage+1
		if over := p.util / c.Utilisation; over >= 1 || p.stage >= c.Stages {
			rate, stage = int64(float64(p.rate)/over)+c.AI, 0
		}
		rate = min(max(rate, c.MinRate), s.line)
		e.shift(h, s, rate, f.at)
		if full {
			p.rate, p.stage = rate, stage
		}
	}
	if full {
		p.update = max(p.update, s.nxt)
	}
}

// utilisation returns the highest of the hops of a path, and over how many
// nanoseconds it was measured.
func (p *hpcc) utilisation(r *intRecord, s *sender, c *CC) (most float64, dt int64) {
	for i := range r.n {
		now, old := &r.hop[i], &p.hop[i]
		tau := int64((now.time - old.time) & intTime)
		sent := int64((now.bytes-old.bytes)&intBytes) * byteUnit * c.Multi
		queue := int64(min(now.queue, old.queue)) * qlenUnit * c.Multi
		u := float64(sent)*8/(float64(tau)*1e-9)/float64(now.rate) + float64(queue)*float64(s.line)/float64(now.rate)/float64(s.window)
		if u > most {
			most, dt = u, tau
		}
		*old = *now
	}
	return most, dt
}

// shift changes the rate, and the time of the next frame by the difference of
// the gaps.
func (e *engine) shift(h *host, s *sender, rate, now int64) {
	size := int(s.last)
	s.nextAvail += e.lasts(size, rate) - e.lasts(size, s.rate)
	s.setRate(rate)
	if h.wake > now && s.nextAvail < h.wake {
		h.wake = max(s.nextAvail, now)
	}
}
