// Package diff compares two runs: what NCCL decides differently, which times
// differ, and which inputs do. In: two Specs. Out: one Document, as text or JSON.
//
// What it must not know: flags, terminals.
package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/show"
)

// Side is one of the two configurations that are compared.
type Side struct {
	Name string // "A"
	Spec scenario.Spec
	// Options is the side's own options, as the user wrote them.
	Options string
	// Planner makes the plans for operation PlansOf, like scenario.Options; nil: NCCL's plans.
	Planner func(*scenario.Site, coll.Func) (scenario.Planner, error)
	PlansOf coll.Func

	opt  scenario.Options
	site *scenario.Site
}

// Load builds the machine of a side. The Spec's workload is not used.
func Load(s Side, opt scenario.Options) (*Side, error) {
	var err error
	s.opt = opt
	s.site, err = scenario.Load(&s.Spec, opt)
	return &s, err
}

// Document is the differences between two sides: settings, communicator, choices, times.
type Document struct {
	A        Shown         `json:"a"`
	B        Shown         `json:"b"`
	Topology []show.Change `json:"topology"` // of the first topology of each
	// Met describes the congestion of both sides if the network is simulated frame by frame, for each
	// operation at the size with the largest difference of times.
	Met []Met `json:"congestion,omitempty"`
	*explain.Difference
}

// Shown describes a side in the output.
type Shown struct {
	Options  string `json:"options"`
	Topology string `json:"topology"`
	SHA256   string `json:"sha256"`
	Nodes    int    `json:"nodes"`
	Ranks    int    `json:"ranks"`
}

// New compares operations on two sides, and their times at the sizes of a workload.
// step, if not nil, is called after each operation and size.
func New(ctx context.Context, a, b *Side, ops []coll.Func, sizes []scenario.Size, step func()) (*Document,
	error) {
	sa, sb := explain.Side{Comm: a.site.Comm, Access: a.site.Config.Topo.Access},
		explain.Side{Comm: b.site.Comm, Access: b.site.Config.Topo.Access}
	d := &Document{A: a.shown(), B: b.shown(), Topology: []show.Change{}}
	var err error
	if d.Difference, err = explain.Compare(sa, sb, ops); err != nil {
		return nil, err
	}
	if a.site.Digest != b.site.Digest {
		d.Topology = append(d.Topology, show.Diff(a.site.Cluster.Classes[0].Spec,
			b.site.Cluster.Classes[0].Spec)...)
	}
	var why []string
	if a.site.Config.Rules.Release != b.site.Config.Rules.Release {
		if why, err = ruleReasons(ctx, a, b, ops); err != nil {
			return nil, err
		}
	}
	d.Inputs = append(d.Inputs, inputs(a, b, why)...)
	for _, f := range ops {
		for _, z := range sizes {
			if err := d.time(ctx, [2]*Side{a, b}, [2]explain.Side{sa, sb}, f, z); err != nil {
				return nil, err
			}
			if step != nil {
				step()
			}
		}
	}
	return d, d.meet(ctx, [2]*Side{a, b})
}

// time simulates an operation and size on both sides, side by side.
func (d *Document) time(ctx context.Context, s [2]*Side, x [2]explain.Side, f coll.Func,
	z scenario.Size) error {
	var at [2]scenario.Operation
	var t [2]explain.Timing
	var errs [2]error
	other := make(chan struct{})
	run := func(i int) { at[i], t[i], errs[i] = s[i].time(ctx, f, z) }
	go func() { defer close(other); run(1) }()
	run(0)
	<-other
	for i, err := range errs {
		if err != nil {
			return &SideError{Name: s[i].Name, Err: s[i].restarted(err)}
		}
	}
	d.AddTime(x[0], x[1], at[0].Op(f), at[1].Op(f), z.Asked, t[0], t[1])
	return nil
}

// SideError is an error of one side, A or B.
type SideError struct {
	Name string
	Err  error
}

// Error prefixes the error with the side.
func (e *SideError) Error() string { return e.Name + ": " + e.Err.Error() }

// restarted adds to an error of a device that is down how to see the job without it.
func (s *Side) restarted(err error) error {
	var gave *sim.RetryError
	var lost *sim.TimedOutError
	if !errors.As(err, &gave) && !errors.As(err, &lost) {
		return err
	}
	for _, f := range s.Spec.Network.Faults {
		if place, down := strings.CutSuffix(f, ":down"); down && strings.HasPrefix(f, "nic=") {
			return fmt.Errorf("%w; to see the job restarted without the NIC, write %s:absent", err, place)
		}
	}
	return err
}

// Unwrap returns the cause.
func (e *SideError) Unwrap() error { return e.Err }

func (s *Side) shown() Shown {
	return Shown{Options: s.Options, Topology: s.site.Name, SHA256: s.site.Digest,
		Nodes: s.site.Cluster.NHosts(), Ranks: s.site.Comm.NRanks}
}

// time simulates an operation of one size and sums it up.
func (s *Side) time(ctx context.Context, f coll.Func, z scenario.Size) (scenario.Operation, explain.Timing,
	error) {
	count, _ := z.Count(f, coll.Float32, s.site.Comm.NRanks)
	at := scenario.Operation{Type: coll.Float32, RedOp: coll.Sum, Count: count}
	spec := s.Spec
	spec.Workload = scenario.Workload{Op: f.TestName()}
	opt := s.opt
	if f == s.PlansOf {
		opt.Planner = s.Planner
	}
	run, err := scenario.On(s.site, spec, opt)
	if err != nil {
		return at, explain.Timing{}, err
	}
	o, err := run.Drawn(ctx, at, false, nil)
	return at, s.timing(f, at, &o), err
}

// timing returns the time, bandwidth and choice of an outcome.
func (s *Side) timing(f coll.Func, at scenario.Operation, o *scenario.Outcome) explain.Timing {
	_, bus := coll.Bandwidth(f, at.Count, at.Type, s.site.Comm.NRanks, o.Result.Elapsed)
	t := explain.Timing{Choice: "none", Us: o.Result.Elapsed.Micros(), BusBW: bus,
		ModelUs: float64(o.Choice.TimeUs)}
	switch {
	case at.Count == 0:
	case o.Choice.Warps > 0:
		t.Choice, t.Channels = o.Choice.Algo.String()+" "+o.Choice.Proto.String(), o.Plan.Split.NChannels
	case o.OfSchedule:
		t.Choice = "schedule"
	case o.SendsAndReceives():
		t.Choice, t.Channels = "P2P", s.site.Comm.P2PChannels
	}
	if o.Draws != nil {
		for _, x := range o.Draws.Simulated {
			t.Draws = append(t.Draws, explain.DrawTime{Us: x.Us, For: x.For})
		}
	}
	if l, ok := scenario.Limiting(o.Result.Links); ok {
		t.Link, t.LinkUs = l.Name, l.Ideal().Micros()
	}
	return t
}

// inputs lists the inputs that differ; rules lists the rules by which the releases differ.
func inputs(a, b *Side, rules []string) []explain.Figure {
	var out []explain.Figure
	add := func(what, x, y string, timing bool, why ...string) {
		if x != y {
			out = append(out, explain.Figure{What: what, A: orNone(x), B: orNone(y), Why: why,
				Timing: timing})
		}
	}
	add("NCCL", a.site.Config.Rules.Version(), b.site.Config.Rules.Version(), false, rules...)
	add("topology", a.site.Name+" "+a.site.Digest[:12], b.site.Name+" "+b.site.Digest[:12], false)
	x, y := config.EnvRows(a.site.Config, a.site.Facts(), true), config.EnvRows(b.site.Config, b.site.Facts(),
		true)
	for _, v := range joined(x, y) {
		add(v.name, v.a, v.b, false, v.effect)
	}
	add("machine class", a.site.Class().Name, b.site.Class().Name, true)
	add("network", a.network(), b.network(), true)
	v, w := a.timeInputs(), b.timeInputs()
	for i := range v {
		add(v[i][0], v[i][1], w[i][1], true)
	}
	return out
}

// timeInputs returns the members of a Spec on which only times depend, by name.
func (s *Side) timeInputs() [][2]string {
	e := &s.Spec.Engine
	word := func(v, def string) string {
		if v == "" {
			return def
		}
		return v
	}
	return [][2]string{{"fault", strings.Join(s.Spec.Network.Faults, ",")}, {"fidelity", e.Fidelity},
		{"fold", word(e.Fold, "auto")}, {"skip", word(e.Skip, "auto")}, {"jitter", word(e.Jitter, "drawn")},
		{"launch", word(e.Launch, "eager")}, {"procs", strconv.Itoa(e.Processes)}, {"seed", s.seed()}}
}

// seed names the seed: none where that means several draws of hashed routes.
func (s *Side) seed() string {
	if s.Spec.Seed == 0 && s.site.Draws(&s.Spec) {
		return "drawn"
	}
	return strconv.FormatUint(max(s.Spec.Seed, 1), 10)
}

// orNone returns "none" for an empty input.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// variable is a setting on both sides, with its effect.
type variable struct{ name, a, b, effect string }

// joined pairs the settings of two sides by name, in the order of the first; a release
// has some that another has not, and there they are unset.
func joined(x, y []config.EnvRow) []variable {
	other := map[string]*config.EnvRow{}
	for i := range y {
		other[y[i].Name] = &y[i]
	}
	var out []variable
	for i := range x {
		v := variable{name: x[i].Name, a: inForce(&x[i]), b: "unset", effect: x[i].Effect}
		if r := other[v.name]; r != nil {
			v.b, v.effect = inForce(r), r.Effect
			delete(other, v.name)
		}
		out = append(out, v)
	}
	for i := range y {
		if r := other[y[i].Name]; r != nil {
			out = append(out, variable{r.Name, "unset", inForce(r), r.Effect})
		}
	}
	return out
}

func inForce(r *config.EnvRow) string {
	if r.Set {
		return r.Value
	}
	return "unset"
}

// network names the network between the nodes.
func (s *Side) network() string {
	if s.site.Network == nil {
		return "ideal"
	}
	return s.Spec.Network.Fabric
}

// Ops returns the operations to compare: the named ones, or seven if none is named. It returns a
// *coll.UnknownNameError.
func Ops(names []string) ([]coll.Func, error) {
	if len(names) == 0 {
		return []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce,
			coll.AllToAll, coll.SendRecv}, nil
	}
	var ops []coll.Func
	for _, name := range names {
		f, err := coll.ParseFunc(name)
		if err != nil {
			return nil, err
		}
		ops = append(ops, f)
	}
	return ops, nil
}

// shownChanges bounds the differences of two topology files in the text.
const shownChanges = 12

// Text formats the comparison.
func (d *Document) Text() string {
	var b strings.Builder
	for i, s := range []Shown{d.A, d.B} {
		fmt.Fprintf(&b, "%c  %s, nodes %d, ranks %d", 'A'+i, s.Topology, s.Nodes, s.Ranks)
		if s.Options != "" {
			fmt.Fprintf(&b, "   %s", s.Options)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	b.WriteString(d.Difference.Text())
	b.WriteString(d.metText())
	if n := len(d.Topology); n > 0 {
		b.WriteString("\nTopology files:\n")
		for _, c := range d.Topology[:min(n, shownChanges)] {
			fmt.Fprintf(&b, "  %s\n", c)
		}
		if n > shownChanges {
			fmt.Fprintf(&b, "  and %d more; --json has them, and topo diff\n", n-shownChanges)
		}
	}
	return b.String()
}

// Option returns the option that a bare word of a side abbreviates: a fault, a setting, a release of NCCL, a
// network or a topology; "" if it is none.
func Option(word string) string {
	key, _, assigned := strings.Cut(word, "=")
	switch {
	case release.Named(word):
		return "nccl-version"
	case assigned && slices.Contains([]string{"rank", "nic", "link", "gpu", "nvswitch", "rail", "leaf"}, key):
		return "fault"
	case assigned && key == strings.ToUpper(key):
		return "env"
	case strings.HasSuffix(word, ".json"):
		return "fabric"
	case strings.Contains(word, ".xml"):
		return "topo"
	}
	return ""
}
