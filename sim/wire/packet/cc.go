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
)

// String is the control's name.
func (k CCKind) String() string {
	if names := [...]string{"no congestion control", "DCQCN", "HPCC", "TIMELY", "DCTCP"}; int(k) < len(names) {
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

	// HPCC.
	Utilisation float64 // eta
	Stages      int32   // additive steps before a multiplicative one
	FastReact   bool
	MultiRate   bool
	Multi       int64 // unit of the records of INT: 128 and 80 bytes times this

	// DCTCP.
	RateAI int64 // bit/s each round trip
}

func (c *CC) check() error {
	switch {
	case c.Kind > DCTCP:
		return &UnsupportedError{What: "this congestion control", Found: fmt.Sprint(c.Kind)}
	case c.Window < 0 || c.MinRate < 0 || c.AI < 0 || c.HAI < 0 || c.RateAI < 0:
		return wrong("a window of %d bytes, least rate %d, increases %d, %d and %d bit/s: none may be negative", c.Window, c.MinRate, c.AI, c.HAI, c.RateAI)
	case c.Kind != NoCC && !(c.Gain >= 0 && c.Gain <= 1):
		return wrong("a gain of %g: write 0 to 1", c.Gain)
	case c.Kind == DCQCN && (c.AlphaPeriod < units.Nanosecond || c.DecreasePeriod < units.Nanosecond || c.IncreasePeriod < units.Nanosecond):
		return wrong("DCQCN with periods of %v, %v and %v: write at least 1 ns", c.AlphaPeriod, c.DecreasePeriod, c.IncreasePeriod)
	case c.Kind != NoCC && c.MinRate < 1:
		return wrong("a least rate of %d bit/s: write at least 1", c.MinRate)
	case c.Kind == HPCC && (c.Window < 1 || c.BaseRTT < units.Nanosecond || !(c.Utilisation > 0) || c.Multi < 1):
		return wrong("HPCC with a window of %d bytes, a round trip of %v, utilisation %g and INT multiple %d: all must be positive", c.Window, c.BaseRTT, c.Utilisation, c.Multi)
	case c.Kind == HPCC && c.MultiRate:
		return &UnsupportedError{What: "HPCC with a rate for each hop", Found: "MULTI_RATE 1"}
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
	}
}

// ccOpen sets a new sender up.
func (e *engine) ccOpen(id int32, s *sender) {
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
	case Timely:
		f.aux = uint32(now / 1000)
	}
}

// ccAck lets the control see an acknowledgement.
func (e *engine) ccAck(h *host, f *frame, s *sender) {
	switch e.cfg.CC.Kind {
	case DCQCN:
		if f.flags&flagCE != 0 && !s.ended {
			e.notify(s, f.at)
		}
	case HPCC:
		e.hpccAck(h, f, s)
	case Timely:
		e.timelyAck(f, s)
	case DCTCP:
		e.dctcpAck(f, s)
	}
}
