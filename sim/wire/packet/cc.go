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
		return fmt.Errorf("a window of %d bytes, least rate %d, increases %d, %d and %d bit/s: none may be negative", c.Window, c.MinRate, c.AI, c.HAI, c.RateAI)
	case c.Kind != NoCC && !(c.Gain >= 0 && c.Gain <= 1):
		return fmt.Errorf("a gain of %g: write 0 to 1", c.Gain)
	case c.Kind == DCQCN && (c.AlphaPeriod < units.Nanosecond || c.DecreasePeriod < units.Nanosecond || c.IncreasePeriod < units.Nanosecond):
		return fmt.Errorf("DCQCN with periods of %v, %v and %v: write at least 1 ns", c.AlphaPeriod, c.DecreasePeriod, c.IncreasePeriod)
	case c.Kind != NoCC && c.MinRate < 1:
		return fmt.Errorf("a least rate of %d bit/s: write at least 1", c.MinRate)
	case c.Kind == HPCC && (c.Window < 1 || c.BaseRTT < units.Nanosecond || !(c.Utilisation > 0) || c.Multi < 1):
		return fmt.Errorf("HPCC with a window of %d bytes, a round trip of %v, utilisation %g and INT multiple %d: all must be positive", c.Window, c.BaseRTT, c.Utilisation, c.Multi)
	case c.Kind == HPCC && c.MultiRate:
		return &UnsupportedError{What: "HPCC with a rate for each hop", Found: "MULTI_RATE 1"}
	}
	return nil
}

// ccBuild makes the state that only some controls need.
func (e *engine) ccBuild() {}

// ccOpen sets a new sender up.
func (e *engine) ccOpen(id int32, s *sender) {
	if e.cfg.CC.Kind == DCQCN {
		s.dcqcn = dcqcn{alpha: 1, target: s.line, tick: never, increase: never}
	}
}

// ccStamp writes into a data frame what the control reads from its
// acknowledgement.
func (e *engine) ccStamp(s *sender, f *frame, now int64) {}

// stamp adds a switch's record to a data frame.
func (e *engine) stamp(l *link, f *frame, at int64) {}

// ccAck lets the control see an acknowledgement.
func (e *engine) ccAck(h *host, f *frame, s *sender) {
	switch e.cfg.CC.Kind {
	case DCQCN:
		if f.flags&flagCE != 0 && !s.ended {
			e.notify(s, f.at)
		}
	}
}
