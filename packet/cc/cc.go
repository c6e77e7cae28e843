// Package cc implements the congestion control of senders: DCQCN, HPCC, TIMELY, DCTCP, Swift and NSCC, with
// named presets of their constants.
//
// In: feedback (notifications, round trips, telemetry), bytes sent and the time. Out: rates and windows. It
// must not know frames, hosts or links.
package cc

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/units"
)

// Kind selects a congestion control algorithm.
type Kind uint8

// The algorithms, each in a file of its own.
const (
	None Kind = iota
	DCQCN
	HPCC
	Timely
	DCTCP
	Swift
	NSCC // of Ultra Ethernet
)

func (k Kind) String() string {
	if names := [...]string{"no congestion control", "DCQCN", "HPCC", "TIMELY", "DCTCP", "Swift",
		"NSCC"}; int(k) < len(names) {
		return names[k]
	}
	return "unknown congestion control"
}

// Unmarked reports whether senders ignore ECN marks.
func (k Kind) Unmarked() bool {
	return k == None || k == HPCC || k == Timely || k == Swift
}

// Params are the settings of a congestion control; each algorithm reads its own group.
type Params struct {
	Kind      Kind
	Window    int64 // most bytes of a queue pair in flight; 0: unbounded
	VarWindow bool  // the window shrinks in proportion to the rate
	Unpaced   bool  // frames are sent at line rate as far as the window allows
	BaseRTT   units.Time
	ByRoute   bool    // window and base round trip follow from each queue pair's route
	MinRate   int64   // bit/s
	AI, HAI   int64   // bit/s: additive and hyper increase
	Gain      float64 // g, of alpha

	// DCQCN: periods of alpha's update, of rate decreases and of increases.
	AlphaPeriod    units.Time
	DecreasePeriod units.Time
	IncreasePeriod units.Time
	FastRecovery   int32 // increases that halve the distance to the target before additive ones begin
	ClampTarget    bool  // the target is set at each cut, not only after an increase
	// Immediate cuts the rate at each notification, as in the paper, instead of every DecreasePeriod; alpha's
	// timer then only lowers alpha.
	Immediate bool
	// CNPGap is the least time between two notifications that a receiver sends for a flow.
	CNPGap units.Time
	// CNPBytes, if not 0, is the size of a CNP, a frame of its own that precedes data and that no pause holds
	// (DSCP 48, a priority of its own). 0: acknowledgements carry the mark instead.
	CNPBytes int
	// ByteReset is the byte counter: the rate rises each time that many bytes are sent, in addition to
	// IncreasePeriod; 0: by time alone. With it increases follow the paper: fast recovery until one of the
	// two counters has passed FastRecovery, additive until both have, then hyper.
	ByteReset int64
	MostCut   float64 // largest cut, as a share of the rate; 0: alpha/2
	Alpha     float64 // at the first notification; 0: 1

	// Swift.
	Swift SwiftParams

	Utilisation float64 // eta
	Stages      int32   // additive steps before a multiplicative one
	FastReact   bool
	MultiRate   bool // a rate for each hop
	// SampleFeedback skips hops without a queue between full updates.
	SampleFeedback bool
	RateCodes      bool  // INT carries ns-3's codes of link rates (Coded)
	Multi          int64 // INT_MULTI: records count in units of 128 and 80 bytes times this

	RateAI int64 // DCTCP: increase in bit/s each round trip
}

// Check validates the settings. Errors: *SettingError, *UnsupportedError.
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

// SettingError reports a setting that is invalid or does not fit the algorithm.
type SettingError struct{ Problem string }

func (e *SettingError) Error() string { return e.Problem }

// UnsupportedError names a feature that is not simulated, and where it was found.
type UnsupportedError struct{ What, Found string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not simulated: found %s", e.What, e.Found)
}

func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

func wrong(format string, args ...any) error { return &SettingError{fmt.Sprintf(format, args...)} }

// Rate is a sender's present rate and its line rate in bit/s. Gap is a full frame's time at Rate in ps; 0: to
// be computed.
type Rate struct{ Rate, Line, Gap int64 }

// Pace returns the rate in bit/s at which frames are spaced: the line rate if Unpaced.
func (r *Rate) Pace(c *Params) int64 {
	if c.Unpaced {
		return r.Line
	}
	return r.Rate
}

// Set changes the rate; the next frame, which is already scheduled, keeps its time.
func (r *Rate) Set(rate int64) {
	if r.Rate != rate {
		r.Rate, r.Gap = rate, 0
	}
}
