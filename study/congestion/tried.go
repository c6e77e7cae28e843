// Package congestion reports the congestion that an operation meets, and changes that would reduce it; each
// proposed change was simulated.
package congestion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/topo/fabric"
)

// Report is the congestion of one operation in its network, and how the draw of hashed (ECMP) routes spreads
// its queue pairs.
type Report struct {
	Network netpreset.Summary `json:"network"`
	Us      float64           `json:"us"`
	BusBW   float64           `json:"busbw"` // GB/s
	// Limit is the link that is busy for the longest time; Use is the share of the operation's time that it
	// is busy, Expect the bus bandwidth if it were busy all the time.
	Limit  string  `json:"limiting_link"`
	Use    float64 `json:"limiting_use"`
	Expect float64 `json:"expect_busbw_GBs"`
	// Draws is the variation over draws of hashed routes; nil if the draw does not matter, or a seed is
	// given.
	Draws *scenario.Draws   `json:"draws,omitempty"`
	Facts *congestion.Facts `json:"facts"`
	// Incast describes an incast; empty if no port to a host limits the operation.
	Incast string `json:"incast,omitempty"`
	// Crowd describes an overloaded port; empty if routes are spread evenly.
	Crowd string   `json:"crowd,omitempty"`
	Tried []Change `json:"tried"`

	name string // of the network
}

// Change is another setting with the time that the operation takes then.
type Change struct {
	What string  `json:"what"`
	Us   float64 `json:"us"`
	// Stalls describes why messages never arrive with the change; empty if all arrive.
	Stalls string `json:"stalls,omitempty"`
}

// Run simulates a Spec of one size, and each change that its congestion suggests.
func Run(ctx context.Context, spec scenario.Spec, opt scenario.Options) (*Report, error) {
	r := &Report{Tried: []Change{}}
	row, err := one(ctx, spec, opt, func(x *scenario.Site, o scenario.Outcome) {
		r.Network, _ = netpreset.Summarize(x.Network, netpreset.Choice{Model: spec.Network.Model,
			CC: spec.Network.CC, Balance: spec.Network.Balance})
		r.Incast, r.Crowd = Named(x, spec.Network.Balance, &o)
	})
	if err != nil {
		return nil, err
	}
	f := &row.Facts
	facts := f.Congestion
	r.Us, r.BusBW, r.Limit, r.Use, r.Expect, r.Draws, r.Facts = row.Out.Time.Micros(), row.Out.BusBW, f.Limit,
		f.Use, f.Expect, f.Draws, facts
	if r.name = spec.Network.Fabric; r.Draws != nil {
		spec.Seed = r.Draws.Seed // all trials use the same draw
	}
	try := func(what string, change func(*scenario.Spec)) error {
		s := spec
		s.NCCL.Env = maps.Clone(spec.NCCL.Env)
		if s.NCCL.Env == nil {
			s.NCCL.Env = map[string]string{}
		}
		change(&s)
		row, err := one(ctx, s, opt, nil)
		var stall *sim.StallError
		var none *scenario.FieldError
		switch {
		case errors.As(err, &stall):
			r.Tried = append(r.Tried, Change{what, 0, stall.Error()})
		case errors.As(err, &none) && strings.HasPrefix(none.Path, "network.faults"): // of frames alone
		case err != nil:
			return err
		default:
			r.Tried = append(r.Tried, Change{what, row.Out.Time.Micros(), ""})
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
			err := try("--balance packet", func(s *scenario.Spec) { s.Network.Balance = "packet" })
			if err != nil {
				return nil, err
			}
		}
	}
	if cc := otherControl(facts); cc != "" {
		err := try("--cc "+cc, func(s *scenario.Spec) { s.Network.CC = cc })
		if err != nil {
			return nil, err
		}
	}
	if len(spec.Network.Faults) > 0 {
		if err := try("without --fault", func(s *scenario.Spec) { s.Network.Faults = nil }); err != nil {
			return nil, err
		}
	}
	if spec.Network.Model == "" {
		return r, nil
	}
	return r, try("--network flow (links shared without queues)", func(s *scenario.Spec) {
		s.Network.Model, s.Network.CC, s.Network.Balance = "", "", ""
	})
}

// otherControl returns the congestion control to try instead of the current one: one without marks if ports
// paused without marking, none if frames were marked.
func otherControl(facts *congestion.Facts) string {
	switch {
	case facts == nil:
		return ""
	case facts.Marked > 0:
		return "none"
	case facts.Pauses > 0:
		return "swift"
	}
	return ""
}

// Named describes the congestion that limits an operation, from the load of links: an incast, and a port with
// more than its share. Both are empty if there is none.
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
	return o.Plan != nil && !o.SendsAndReceives() && o.Choice.Algo.LogName() == "RING" &&
		int(c.Of) == o.Plan.Split.NChannels
}

// cause returns the reason why a port carries more than its neighbours.
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

// one simulates the single point of a Spec.
func one(ctx context.Context, spec scenario.Spec, opt scenario.Options,
	see func(*scenario.Site, scenario.Outcome)) (*scenario.Row, error) {
	run, err := scenario.Prepare(spec, opt)
	if err != nil {
		return nil, err
	}
	for row, err := range run.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if see != nil {
			o, err := run.Outcome(row.Operation)
			if err != nil {
				return nil, err
			}
			see(run.Site, o)
		}
		return row, nil
	}
	return nil, fail.Usage("%s: no sizes", spec.Workload.Op)
}

// Eventful reports whether frames were marked, paused, resent or dropped, or a port carries more than its
// share.
func (r *Report) Eventful() bool {
	f := r.Facts
	return r.Crowd != "" || f != nil && (f.Marked+f.Pauses+f.Resent+f.Dropped > 0 || f.PausedUs > 0)
}

// Text formats the report; "" for nil.
func (r *Report) Text() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	if r.Network.Model == "" {
		fmt.Fprintf(&b, "\nNetwork %s, links shared (NCCL's model above has the ports' speed alone): %.2f "+
			"us, %.2f GB/s busbw\n", r.name, r.Us, r.BusBW)
	} else {
		fmt.Fprintf(&b, "\nNetwork, frame by frame: %.2f us, %.2f GB/s busbw\n", r.Us, r.BusBW)
	}
	if r.Expect > 0 {
		fmt.Fprintf(&b, "  fullest link: %s, needed %.1f %% of the time; %.2f GB/s if it were never idle\n",
			r.Limit, 100*r.Use, r.Expect)
	}
	if d := r.Draws; d != nil {
		for _, l := range d.Lines(r.BusBW, r.Us) {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
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

// Beside combines a choice and the congestion of its messages for JSON output.
func Beside(why *explain.Report, met *Report) any {
	return struct {
		*explain.Report
		Congestion *Report `json:"congestion,omitempty"`
	}{why, met}
}
