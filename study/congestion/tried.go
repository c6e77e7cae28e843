// Package congestion says what congestion an operation meets, and what would change it:
// each change that it names was simulated.
package congestion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/topo/fabric"
)

// Report is the congestion of one operation.
type Report struct {
	Network netpreset.Summary `json:"network"`
	Us      float64           `json:"us"`
	Facts   *congestion.Facts `json:"facts"`
	// Incast is in words; empty where no port before a host holds the operation up.
	Incast string `json:"incast,omitempty"`
	// Crowd is in words; empty where routes spread.
	Crowd string   `json:"crowd,omitempty"`
	Tried []Change `json:"tried"`
}

// Change is another setting with the time that the operation takes then.
type Change struct {
	What string  `json:"what"`
	Us   float64 `json:"us"`
	// Stalls says why messages never arrive then; empty where all do.
	Stalls string `json:"stalls,omitempty"`
}

// Run simulates a Spec of one size, and each change that what it meets suggests.
func Run(ctx context.Context, spec scenario.Spec, opt scenario.Options) (*Report, error) {
	r := &Report{Tried: []Change{}}
	us, facts, err := one(ctx, spec, opt, func(x *scenario.Site, o scenario.Outcome) {
		r.Network, _ = netpreset.Summarize(x.Network, netpreset.Choice{Model: spec.Network.Model, CC: spec.Network.CC, Balance: spec.Network.Balance})
		r.Incast, r.Crowd = Named(x, spec.Network.Balance, &o)
	})
	if err != nil {
		return nil, err
	}
	r.Us, r.Facts = us, facts
	try := func(what string, change func(*scenario.Spec)) error {
		s := spec
		s.NCCL.Env = maps.Clone(spec.NCCL.Env)
		if s.NCCL.Env == nil {
			s.NCCL.Env = map[string]string{}
		}
		change(&s)
		us, _, err := one(ctx, s, opt, nil)
		var stall *sim.StallError
		var none *scenario.FieldError
		switch {
		case errors.As(err, &stall):
			r.Tried = append(r.Tried, Change{what, 0, stall.Error()})
		case errors.As(err, &none) && strings.HasPrefix(none.Path, "network.faults"): // of frames alone
		case err != nil:
			return err
		default:
			r.Tried = append(r.Tried, Change{what, us, ""})
		}
		return nil
	}
	if r.Crowd != "" {
		if err := try("NCCL_IB_QPS_PER_CONNECTION=4 NCCL_IB_SPLIT_DATA_ON_QPS=1", func(s *scenario.Spec) {
			s.NCCL.Env["NCCL_IB_QPS_PER_CONNECTION"], s.NCCL.Env["NCCL_IB_SPLIT_DATA_ON_QPS"] = "4", "1"
		}); err != nil {
			return nil, err
		}
		if spec.Network.Model == "packet" && spec.Network.Balance == "" {
			if err := try("--balance packet", func(s *scenario.Spec) { s.Network.Balance = "packet" }); err != nil {
				return nil, err
			}
		}
	}
	if facts != nil && facts.Pauses > 0 && facts.Marked == 0 {
		if err := try("--cc swift", func(s *scenario.Spec) { s.Network.CC = "swift" }); err != nil {
			return nil, err
		}
	}
	if facts != nil && facts.Marked > 0 {
		if err := try("--cc none", func(s *scenario.Spec) { s.Network.CC = "none" }); err != nil {
			return nil, err
		}
	}
	if len(spec.Network.Faults) > 0 {
		if err := try("without --fault", func(s *scenario.Spec) { s.Network.Faults = nil }); err != nil {
			return nil, err
		}
	}
	return r, try("--network flow (links shared without queues)", func(s *scenario.Spec) { s.Network.Model, s.Network.CC, s.Network.Balance = "", "", "" })
}

// Named says in words what congestion holds an operation up, from how loaded links were: an
// incast, and a port that carries more than its share. Both are empty where there is none.
func Named(x *scenario.Site, balance string, o *scenario.Outcome) (incast, crowd string) {
	if c, ok := congestion.Fed(o.Result.Links, o.Result.Elapsed); ok {
		incast = c.String()
	}
	if c, ok := congestion.Crowded(o.Result.Links); ok {
		c.Rings = rings(&c, o)
		crowd = c.String() + ": " + cause(x, balance, &c)
	}
	return incast, crowd
}

// rings reports whether the queue pairs that a port could have shared are one a ring: each
// ring leaves or enters a switch once, over a connection of one queue pair.
func rings(c *congestion.Crowd, o *scenario.Outcome) bool {
	return o.Plan != nil && !o.SendsAndReceives() && o.Choice.Algo.LogName() == "RING" && int(c.Of) == o.Plan.Split.NChannels
}

// cause is why a port carries more than those beside it.
func cause(x *scenario.Site, balance string, c *congestion.Crowd) string {
	n := x.Network
	switch {
	case c.Slower > 1.01:
		return fmt.Sprintf("another beside it is %.3g times as fast", c.Slower)
	case balance == "flowlet" || balance == "packet":
		return "frames chose it"
	case n == nil:
		return "one switch"
	case n.Packets != nil && n.Packets.Balance != "" && n.Packets.Balance != "queue-pair":
		return "frames chose it"
	case n.Routing == fabric.Static:
		return "routes follow from destinations"
	case n.Routing == fabric.Adaptive:
		return "it was the emptiest when its queue pairs were made"
	}
	return "hash collision"
}

// one simulates the only point of a Spec.
func one(ctx context.Context, spec scenario.Spec, opt scenario.Options, see func(*scenario.Site, scenario.Outcome)) (us float64, facts *congestion.Facts, err error) {
	run, err := scenario.Prepare(spec, opt)
	if err != nil {
		return 0, nil, err
	}
	for row, err := range run.Rows(ctx) {
		if err != nil {
			return 0, nil, err
		}
		if see != nil {
			o, err := run.Outcome(row.Operation)
			if err != nil {
				return 0, nil, err
			}
			see(run.Site, o)
		}
		return row.Out.Time.Micros(), row.Facts.Congestion, nil
	}
	return 0, nil, nil
}

// Eventful says that queues made switches act, or that routes do not spread.
func (r *Report) Eventful() bool {
	f := r.Facts
	return r.Crowd != "" || f != nil && (f.Marked+f.Pauses+f.Resent+f.Dropped > 0 || f.PausedUs > 0)
}

// Text is the report in words; empty without one.
func (r *Report) Text() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nNetwork, frame by frame: %.2f us\n", r.Us)
	if r.Network.Model != "" {
		fmt.Fprintf(&b, "  %s\n", r.Network.String())
	}
	if f := r.Facts; f != nil {
		for _, l := range f.Lines() {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	if r.Incast != "" {
		fmt.Fprintf(&b, "  %s\n", r.Incast)
	}
	if r.Crowd != "" {
		fmt.Fprintf(&b, "  %s\n", r.Crowd)
	}
	for _, t := range r.Tried {
		if t.Stalls != "" {
			fmt.Fprintf(&b, "  tried %s: does not end: %s\n", t.What, t.Stalls)
			continue
		}
		fmt.Fprintf(&b, "  tried %s: %.2f us", t.What, t.Us)
		if r.Us > 0 { // an operation of no elements takes no time
			fmt.Fprintf(&b, ", %+.1f %%", math.Round(1000*(t.Us/r.Us-1))/10+0) // no -0.0
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Beside is a choice with what its messages meet, as a document; nil for nothing.
func Beside(why *explain.Report, met *Report) any {
	return struct {
		*explain.Report
		Congestion *Report `json:"congestion,omitempty"`
	}{why, met}
}
