package packet

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// CCKind is a congestion control.
type CCKind uint8

// Congestion controls.
const (
	NoCC CCKind = iota
	DCQCN
	HPCC
	Timely
	DCTCP
	Swift
)

// String is the control's name.
func (k CCKind) String() string {
	if names := [...]string{"no congestion control", "DCQCN", "HPCC", "TIMELY", "DCTCP", "Swift"}; int(k) < len(names) {
		return names[k]
	}
	return "unknown congestion control"
}

// CC is the congestion control of senders.
type CC struct {
	Kind      CCKind
	Window    int64 // most bytes in flight of a queue pair; 0: no bound
	VarWindow bool  // the window shrinks with the rate
	Unpaced   bool  // frames follow each other at line rate, whatever the rate
	BaseRTT   units.Time
	MinRate   int64   // bit/s
	AI, HAI   int64   // bit/s: additive and hyper increase
	Gain      float64 // g, of alpha

	// DCQCN.
	AlphaPeriod    units.Time // alpha is updated so often
	DecreasePeriod units.Time // at most one cut in so long
	IncreasePeriod units.Time
	FastRecovery   int32
	ClampTarget    bool // the target is set at each cut, not only after an increase
	// Immediate cuts at each notification, as the paper has it, in place of
	// DecreasePeriod; alpha's timer only lowers it then.
	Immediate bool
	// CNPGap is the least time between two notifications of a flow by its receiver.
	CNPGap units.Time
	// ByteReset is after how many bytes sent the rate rises, beside IncreasePeriod; 0:
	// by time alone. With it increases follow the paper: recovery while neither
	// counter has passed FastRecovery, hyper, and more each time, once both have.
	ByteReset int64
	MostCut   float64 // share of the rate that a cut takes at most; 0: alpha/2
	Alpha     float64 // at the first notification; 0: 1

	// Swift.
	Swift SwiftParams

	// HPCC.
	Utilisation float64 // eta
	Stages      int32   // additive steps before a multiplicative one
	FastReact   bool
	MultiRate   bool // a rate for each hop
	// SampleFeedback leaves out hops without a queue between full updates.
	SampleFeedback bool
	Multi          int64 // unit of the records of INT: 128 and 80 bytes times this

	// DCTCP.
	RateAI int64 // bit/s each round trip
}

func (c *CC) check() error {
	switch {
	case c.Kind > Swift:
		return &UnsupportedError{What: "this congestion control", Found: fmt.Sprint(c.Kind)}
	case c.Window < 0 || c.MinRate < 0 || c.AI < 0 || c.HAI < 0 || c.RateAI < 0:
		return wrong("a window of %d bytes, least rate %d, increases %d, %d and %d bit/s: none may be negative", c.Window, c.MinRate, c.AI, c.HAI, c.RateAI)
	case c.Kind != NoCC && !(c.Gain >= 0 && c.Gain <= 1):
		return wrong("a gain of %g: write 0 to 1", c.Gain)
	case c.Kind == DCQCN && (c.AlphaPeriod < units.Nanosecond || c.DecreasePeriod < units.Nanosecond || c.IncreasePeriod < units.Nanosecond):
		return wrong("DCQCN with periods of %v, %v and %v: write at least 1 ns", c.AlphaPeriod, c.DecreasePeriod, c.IncreasePeriod)
	case c.CNPGap < 0 || c.ByteReset < 0 || !(c.MostCut >= 0 && c.MostCut <= 1) || !(c.Alpha >= 0 && c.Alpha <= 1):
		return wrong("notifications %v apart, a byte counter of %d, cuts of at most %g, alpha %g: none may be negative, shares at most 1", c.CNPGap, c.ByteReset, c.MostCut, c.Alpha)
	case c.Kind != NoCC && c.MinRate < 1:
		return wrong("a least rate of %d bit/s: write at least 1", c.MinRate)
	case c.Kind == HPCC && (c.Window < 1 || c.BaseRTT < units.Nanosecond || !(c.Utilisation > 0) || c.Multi < 1):
		return wrong("HPCC with a window of %d bytes, a round trip of %v, utilisation %g and INT multiple %d: all must be positive", c.Window, c.BaseRTT, c.Utilisation, c.Multi)
	}
	if c.Kind == Swift {
		return c.Swift.check()
	}
	return nil
}

// ccBuild makes the state that only some controls need.
func (e *engine) ccBuild() {
	switch e.cfg.CC.Kind {
	case HPCC:
		e.hp = make([]*hpcc, len(e.flows))
	case Timely:
		e.ti = make([]timely, len(e.flows))
	case DCTCP:
		e.dc = make([]dctcp, len(e.flows))
	case Swift:
		e.sw = make([]swift, len(e.flows))
	}
}

// ccOpen sets a new sender up whose route has so many links.
func (e *engine) ccOpen(id int32, s *sender, links int) {
	switch e.cfg.CC.Kind {
	case DCQCN:
		s.dcqcn = dcqcn{alpha: 1, target: s.line, tick: never, increase: never}
	case HPCC:
		rtt := e.cfg.CC.BaseRTT
		if f := &e.flows[id]; f.BaseRTT > 0 {
			rtt = f.BaseRTT
		}
		e.hp[id] = e.newHPCC(s, int64(rtt/units.Nanosecond))
	case Timely:
		e.ti[id] = timely{rate: s.line}
	case DCTCP:
		e.dc[id] = dctcp{alpha: 1}
	case Swift:
		e.sw[id] = e.newSwift(s, links-1)
	}
}

// ccStamp writes into a data frame what the control reads from its
// acknowledgement.
func (e *engine) ccStamp(f *frame, now int64) {
	switch e.cfg.CC.Kind {
	case HPCC:
		p := e.hp[f.flow]
		f.aux = f.psn
		p.ring[int(f.psn)&(len(p.ring)-1)].n = 0
	case Timely, Swift:
		f.aux = uint32(now / 1000)
	}
}

// ccAck lets the control see an acknowledgement.
func (e *engine) ccAck(h *host, f *frame, s *sender, acked uint32) {
	switch e.cfg.CC.Kind {
	case DCQCN:
		if f.flags&flagCE != 0 && !s.ended {
			e.notify(s, f.at)
		}
	case HPCC:
		e.hpccAck(h, f, s)
	case Timely:
		if f.flags&flagSack == 0 { // a report has no time
			e.timelyAck(f, s)
		}
	case DCTCP:
		e.dctcpAck(f, s)
	case Swift:
		if f.flags&flagNack != 0 {
			e.swiftLoss(f.flow, s, f.at, false)
		} else if f.flags&flagSack == 0 {
			e.swiftAck(f, s, acked)
		}
	}
}
