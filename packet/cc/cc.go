// Package cc is the congestion control of senders: presets by name, single settings,
// and how DCQCN, HPCC, TIMELY, DCTCP, Swift and NSCC react to feedback.
//
// In: notifications, bytes sent and the time. Out: rates. It must not know frames,
// hosts or links.
package cc

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/units"
)

// Kind is a congestion control.
type Kind uint8

// Congestion controls.
const (
	None Kind = iota
	DCQCN
	HPCC
	Timely
	DCTCP
	Swift
	NSCC // of Ultra Ethernet
)

// String is the control's name.
func (k Kind) String() string {
	if names := [...]string{"no congestion control", "DCQCN", "HPCC", "TIMELY", "DCTCP", "Swift",
		"NSCC"}; int(k) < len(names) {
		return names[k]
	}
	return "unknown congestion control"
}

// Unmarked reports whether no sender minds whether frames are marked.
func (k Kind) Unmarked() bool {
	return k == None || k == HPCC || k == Timely || k == Swift
}

// Params is the congestion control of senders.
type Params struct {
	Kind      Kind
	Window    int64 // most bytes in flight of a queue pair; 0: no bound
	VarWindow bool  // the window shrinks with the rate
	Unpaced   bool  // frames follow each other at line rate, whatever the rate
	BaseRTT   units.Time
	ByRoute   bool    // the window and the base round trip of a queue pair are those of its route
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
	// CNPBytes, where set, is the size of a notification, a frame of its own that precedes data and that no
	// pause holds back (CNPs: DSCP 48, in a priority of their own); 0: acknowledgements are marked.
	CNPBytes int
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
	RateCodes      bool  // frames carry the rates of links as codes of the HPCC simulator, see Coded
	Multi          int64 // unit of the records of INT: 128 and 80 bytes times this

	// DCTCP.
	RateAI int64 // bit/s each round trip
}

// Check finds what is wrong with the settings.
func (c *Params) Check() error {
	switch {
	case c.Kind > NSCC:
		return &UnsupportedError{What: "this congestion control", Found: fmt.Sprint(c.Kind)}
	case c.Window < 0 || c.MinRate < 0 || c.AI < 0 || c.HAI < 0 || c.RateAI < 0:
		return wrong("a window of %d bytes, least rate %d, increases %d, %d and %d bit/s: none may be "+
			"negative", c.Window, c.MinRate, c.AI, c.HAI, c.RateAI)
	case c.Kind != None && !(c.Gain >= 0 && c.Gain <= 1):
		return wrong("a gain of %g: write 0 to 1", c.Gain)
	case c.Kind == DCQCN && (c.AlphaPeriod < units.Nanosecond || c.DecreasePeriod < units.Nanosecond ||
		c.IncreasePeriod < units.Nanosecond):
		return wrong("DCQCN with periods of %v, %v and %v: write at least 1 ns", c.AlphaPeriod,
			c.DecreasePeriod, c.IncreasePeriod)
	case c.CNPGap < 0 || c.ByteReset < 0 || !(c.MostCut >= 0 && c.MostCut <= 1) ||
		!(c.Alpha >= 0 && c.Alpha <= 1):
		return wrong("notifications %v apart, a byte counter of %d, cuts of at most %g, alpha %g: none may "+
			"be negative, shares at most 1", c.CNPGap, c.ByteReset, c.MostCut, c.Alpha)
	case c.CNPBytes < 0 || c.CNPBytes > 1<<16-1 || c.CNPBytes > 0 && c.Kind != DCQCN:
		return wrong("notifications in frames of %d bytes with %v: write at most %d, with DCQCN, or 0 for "+
			"marks on acknowledgements", c.CNPBytes, c.Kind, 1<<16-1)
	case c.Kind != None && c.MinRate < 1:
		return wrong("a least rate of %d bit/s: write at least 1", c.MinRate)
	case c.Kind == HPCC && !c.ByRoute && (c.BaseRTT < units.Nanosecond || c.Window < 1):
		return wrong("%v with a window of %d bytes and a round trip of %v: both must be positive", c.Kind,
			c.Window, c.BaseRTT)
	case c.Kind == NSCC && !c.ByRoute:
		return wrong("%v scales its windows with the round trip of a route: set ByRoute", c.Kind)
	case c.Kind == HPCC && (!(c.Utilisation > 0) || c.Multi < 1):
		return wrong("HPCC with utilisation %g and INT multiple %d: both must be positive", c.Utilisation,
			c.Multi)
	}
	if c.Kind == Swift {
		return c.Swift.check()
	}
	return nil
}

// SettingError is a setting that cannot be.
type SettingError struct{ Problem string }

func (e *SettingError) Error() string { return e.Problem }

// UnsupportedError names what is not simulated.
type UnsupportedError struct{ What, Found string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not simulated: found %s", e.What, e.Found)
}

// Is makes it an errors.ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// wrong makes a SettingError.
func wrong(format string, args ...any) error { return &SettingError{fmt.Sprintf(format, args...)} }

// Rate is what a sender may send, in bit/s. Gap is the ps that a full frame takes at
// it; 0: not known.
type Rate struct{ Rate, Line, Gap int64 }

// Pace is the rate at which frames follow each other.
func (r *Rate) Pace(c *Params) int64 {
	if c.Unpaced {
		return r.Line
	}
	return r.Rate
}

// Set changes the rate; what is set for the next frame stays.
func (r *Rate) Set(rate int64) {
	if r.Rate != rate {
		r.Rate, r.Gap = rate, 0
	}
}
