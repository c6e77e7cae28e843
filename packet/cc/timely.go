package cc

// TIMELY's constants in the HPCC simulator (model/rdma-hw.cc); times in ns.
const (
	timelyAlpha  = 0.875
	timelyBeta   = 0.8
	timelyLow    = 50_000
	timelyHigh   = 500_000
	timelyMinRTT = 20_000
	timelyHyper  = 5 // increases in a row before larger ones begin
)

// Gradient is TIMELY's state of a flow (SIGCOMM'15).
type Gradient struct {
	update uint32
	stage  int32
	rtt    int64 // the last round trip in ns
	diff   float64
	rate   int64
}

// NewGradient returns the state of a flow that starts at line rate (bit/s).
func NewGradient(line int64) Gradient { return Gradient{rate: line} }

// Ack adjusts the rate once a round trip (rtt in ns) by the gradient of round trips. Frames below psn have
// arrived; next is the next frame to be sent.
func (t *Gradient) Ack(c *Params, s *Rate, psn, next uint32, rtt int64) {
	if psn <= t.update {
		return
	}
	if t.update != 0 {
		t.diff = float64((1-timelyAlpha)*t.diff) + float64(timelyAlpha*float64(rtt-t.rtt))
		gradient := t.diff / timelyMinRTT
		factor := 0.0 // factor of a rate decrease
		switch {
		case rtt > timelyHigh:
			factor = 1 - float64(timelyBeta*(1-timelyHigh/float64(rtt)))
		case rtt >= timelyLow && gradient > 0:
			factor = max(0, 1-float64(timelyBeta*gradient))
		default:
			factor = -1
		}
		t.step(c, s, factor)
	}
	if next > t.update {
		t.update, t.rtt = next, rtt
	}
}

// step multiplies the rate by factor, or increases it if factor is negative.
func (t *Gradient) step(c *Params, s *Rate, factor float64) {
	if factor >= 0 {
		t.rate, t.stage = max(c.MinRate, int64(float64(t.rate)*factor)), 0
	} else {
		add := c.AI
		if t.stage >= timelyHyper {
			add = c.HAI
		}
		t.rate = min(t.rate+add, s.Line)
		t.stage++
	}
	s.Set(t.rate)
}
