package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/report/topology"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// diffSizes are timed where nobody asks for sizes.
const diffSizes = "1K,32K,1M,16M,256M"

// diffOps are compared where nobody names any.
var diffOps = []string{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"}

func newDiff(a *app) *cobra.Command {
	var both runFlags
	texts := [2]string{}
	status := false
	c := &cobra.Command{Use: "diff [OP...]", Short: "Compare two settings, machines or networks: what changes, and why",
		Long: `diff builds two communicators, A and B, and says which decisions and which times
differ between them, and why: rules that switch something off on one side, cost
terms that moved, graphs, paths, the fullest link. Options given outside --a and
--b hold for both. In them, K=V is short for --env K=V, FILE.xml for --topo,
FILE.json for --fabric, and rank=…, nic=… and link=… for --fault; quotes work as
in a shell. A side that is left out, or empty, has nothing of its own.

Without OP, seven operations are compared; sizes are ` + diffSizes + ` unless
--sizes, -b, -e, -f or -i say otherwise. Exit status 0, with --exit-code 7 where
anything differs.`,
		Example: `  simccl diff all_reduce --b NCCL_NVLS_ENABLE=0
  simccl diff all_reduce --nodes 4 --a NCCL_ALGO=Ring --b NCCL_ALGO=Tree --sizes 64K,16M
  simccl diff --a "--topo old.xml --nodes 2" --b "--topo new.xml --nodes 2" --sizes 1M
  simccl diff alltoall --sizes 4M --fabric net.json --b link=leaf0~spine1:down`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.compareSides(cmd, &both, args, texts)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(d)
			} else {
				err = a.printText(d.text())
			}
			if err == nil && status && !d.Same() {
				err = failed("A and B differ")
			}
			return err
		}}
	f := c.Flags()
	f.StringVar(&texts[0], "a", "", "`OPTIONS` of the first side")
	f.StringVar(&texts[1], "b", "", "`OPTIONS` of the second side")
	f.BoolVar(&status, "exit-code", false, "status 7 where anything differs")
	both.machine.register(c)
	both.machine.registerClass(c)
	both.registerTimes(f)
	both.test.registerSizes(f)
	return c
}

// side is one of the two that are compared.
type side struct {
	app   *app
	name  string // "A"
	words []string
	flags runFlags
	times *pflag.FlagSet // what only times depend on
	m     *machine
}

// comparison is what diff prints.
type comparison struct {
	A        shownSide         `json:"a"`
	B        shownSide         `json:"b"`
	Topology []topology.Change `json:"topology"` // of the first topology of each
	*explain.Difference
}

// shownSide names a side.
type shownSide struct {
	Options  string `json:"options"`
	Topology string `json:"topology"`
	SHA256   string `json:"sha256"`
	Nodes    int    `json:"nodes"`
	Ranks    int    `json:"ranks"`
}

func (a *app) compareSides(cmd *cobra.Command, both *runFlags, args []string, texts [2]string) (*comparison, error) {
	if !cmd.Flags().Changed("a") && !cmd.Flags().Changed("b") {
		return nil, usage(`diff: what with what? write --a OPTIONS, --b OPTIONS or both, for example --b NCCL_NVLS_ENABLE=0`)
	}
	if len(args) == 0 {
		args = diffOps
	}
	var ops []coll.Func
	for _, name := range args {
		f, err := coll.ParseFunc(name)
		if err != nil {
			return nil, err
		}
		ops = append(ops, f)
	}
	if !both.test.sized(cmd) {
		both.test.sizes = diffSizes
	}
	sizes, _, err := both.test.list(cmd)
	if err != nil {
		return nil, err
	}
	var talk bytes.Buffer
	s := [2]*side{}
	for i := range s {
		s[i] = &side{app: a.quiet(&talk), name: string(rune('A' + i))}
		if err := s[i].load(cmd, texts[i]); err != nil {
			return nil, fmt.Errorf("--%s: %w", strings.ToLower(s[i].name), err)
		}
	}
	a.tellOnce(talk.String())
	sa, sb := explain.Side{Comm: s[0].m.comm, Access: s[0].m.cfg.Topo.Access}, explain.Side{Comm: s[1].m.comm, Access: s[1].m.cfg.Topo.Access}
	out := &comparison{A: s[0].shown(), B: s[1].shown(), Topology: []topology.Change{}}
	if out.Difference, err = explain.Compare(sa, sb, ops); err != nil {
		return nil, err
	}
	if s[0].m.digest != s[1].m.digest {
		out.Topology = append(out.Topology, topology.Diff(s[0].m.cluster.Classes[0].Spec, s[1].m.cluster.Classes[0].Spec)...)
	}
	out.Inputs = append(out.Inputs, inputs(s[0], s[1])...)
	told := a.progress("sizes", len(ops)*len(sizes))
	defer told.end()
	return out, out.times(cmd.Context(), s, [2]explain.Side{sa, sb}, ops, sizes, told)
}

// quiet is the app with its own settings, talking elsewhere.
func (a *app) quiet(talk *bytes.Buffer) *app {
	sub := *a
	sub.err, sub.json = talk, false
	sub.env = slices.Clone(a.env)
	return &sub
}

// tellOnce prints lines, each once.
func (a *app) tellOnce(lines string) {
	seen := map[string]bool{}
	for l := range strings.Lines(lines) {
		if !seen[l] {
			seen[l] = true
			fmt.Fprint(a.err, l)
		}
	}
}

// load parses the options of a side over those of both and builds it.
func (s *side) load(both *cobra.Command, text string) error {
	own, err := splitWords(text)
	if err != nil {
		return err
	}
	s.words = own
	var env []string
	c := &cobra.Command{Use: "diff", SilenceUsage: true, SilenceErrors: true, Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, bare []string) error {
			for _, w := range bare {
				if err := setBare(c, w); err != nil {
					return err
				}
			}
			if err := s.flags.checkTimes(); err != nil {
				return err
			}
			s.app.env = append(s.app.env, env...)
			var err error
			s.m, err = s.flags.machine.load(s.app)
			return err
		}}
	s.flags.machine.register(c)
	s.flags.machine.registerClass(c)
	s.times = pflag.NewFlagSet("times", pflag.ContinueOnError)
	s.flags.registerTimes(s.times)
	c.Flags().AddFlagSet(s.times)
	c.Flags().StringArrayVar(&env, "env", nil, "")
	c.Flags().BoolVar(&s.app.noEnv, "no-env", s.app.noEnv, "")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v", err) })
	words := []string{} // not nil, which would mean the arguments of the process
	both.Flags().Visit(func(f *pflag.Flag) {
		if c.Flags().Lookup(f.Name) == nil || both.InheritedFlags().Lookup(f.Name) != nil { // the app has those
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				words = append(words, "--"+f.Name+"="+v)
			}
			return
		}
		words = append(words, "--"+f.Name+"="+f.Value.String())
	})
	c.SetArgs(append(words, own...))
	return c.Execute()
}

// setBare sets the option that a bare setting, file or fault is short for.
func setBare(c *cobra.Command, w string) error {
	key, _, assigned := strings.Cut(w, "=")
	option := ""
	switch {
	case assigned && (key == "rank" || key == "nic" || key == "link"):
		option = "fault"
	case assigned && key == strings.ToUpper(key):
		option = "env"
	case strings.HasSuffix(w, ".json"):
		option = "fabric"
	case strings.Contains(w, ".xml"):
		option = "topo"
	default:
		return usage("unexpected %q: write options as run has them, or NCCL_K=V, FILE.xml, FILE.json, or a fault", w)
	}
	return c.Flags().Set(option, w)
}

func (s *side) shown() shownSide {
	return shownSide{Options: strings.Join(s.words, " "), Topology: s.m.name, SHA256: s.m.digest, Nodes: s.m.cluster.NHosts(), Ranks: s.m.comm.NRanks}
}

// inputs lists what was given differently.
func inputs(a, b *side) []explain.Figure {
	var out []explain.Figure
	add := func(what, x, y string, timing bool, why ...string) {
		if x != y {
			out = append(out, explain.Figure{What: what, A: orNone(x), B: orNone(y), Why: why, Timing: timing})
		}
	}
	add("topology", a.m.name+" "+a.m.digest[:12], b.m.name+" "+b.m.digest[:12], false)
	x, y := config.EnvRows(a.m.cfg, config.FactsOf(a.m.comm), true), config.EnvRows(b.m.cfg, config.FactsOf(b.m.comm), true)
	for i := range x {
		add(x[i].Name, inForce(&x[i]), inForce(&y[i]), false, y[i].Effect)
	}
	add("machine class", a.m.class.Name, b.m.class.Name, true)
	add("network", network(a), network(b), true)
	a.times.VisitAll(func(f *pflag.Flag) {
		add(f.Name, f.Value.String(), b.times.Lookup(f.Name).Value.String(), true)
	})
	return out
}

// orNone writes an option's value; lists stand in brackets.
func orNone(s string) string {
	if s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"); s == "" {
		return "none"
	}
	return s
}

func inForce(r *config.EnvRow) string {
	if r.Set {
		return r.Value
	}
	return "unset"
}

// network names the network between the nodes of a side.
func network(s *side) string {
	if s.m.network == nil {
		return "ideal"
	}
	return s.flags.machine.fabric
}

// times simulates every operation and size on both sides, side by side.
func (d *comparison) times(ctx context.Context, s [2]*side, x [2]explain.Side, ops []coll.Func, sizes []size, told *progress) error {
	for _, f := range ops {
		for _, z := range sizes {
			var done [2]outcome
			var at [2]point
			var errs [2]error
			other := make(chan struct{})
			run := func(i int) { at[i], done[i], errs[i] = s[i].time(ctx, f, z) }
			go func() { defer close(other); run(1) }()
			run(0)
			<-other
			for i, err := range errs {
				if err != nil {
					return fmt.Errorf("--%c: %w", 'a'+i, err)
				}
			}
			d.AddTime(x[0], x[1], at[0].operation(f), at[1].operation(f), z.asked, s[0].timing(f, at[0], &done[0]), s[1].timing(f, at[1], &done[1]))
			told.step()
		}
	}
	return nil
}

// sweep is what simulates on a side.
func (s *side) sweep(f coll.Func) *sweep {
	return &sweep{app: s.app, m: s.m, flags: &s.flags, fn: f}
}

func (s *side) time(ctx context.Context, f coll.Func, z size) (point, outcome, error) {
	count, _ := z.count(f, coll.Float32, s.m.comm.NRanks)
	p := point{typ: coll.Float32, op: coll.Sum, count: count}
	o, err := s.sweep(f).simulate(ctx, p, trace.Discard, nccltrace.Options{})
	return p, o, err
}

// timing sums an outcome up.
func (s *side) timing(f coll.Func, p point, o *outcome) explain.Timing {
	_, bus := coll.Bandwidth(f, p.count, p.typ, s.m.comm.NRanks, o.result.Elapsed)
	t := explain.Timing{Choice: "none", Us: o.result.Elapsed.Micros(), BusBW: bus, ModelUs: float64(o.choice.TimeUs)}
	switch {
	case p.count == 0:
	case o.choice.Warps > 0:
		t.Choice, t.Channels = o.choice.Algo.String()+" "+o.choice.Proto.String(), o.plan.Split.NChannels
	case o.sends():
		t.Choice, t.Channels = "P2P", s.m.comm.P2PChannels
	}
	if l, ok := limiting(o.result.Links); ok {
		t.Link, t.LinkUs = l.Name, l.Ideal().Micros()
	}
	return t
}

// shownChanges bounds the differences of two topology files in the text.
const shownChanges = 12

func (d *comparison) text() string {
	var b strings.Builder
	for i, s := range []shownSide{d.A, d.B} {
		fmt.Fprintf(&b, "%c  %s, nodes %d, ranks %d", 'A'+i, s.Topology, s.Nodes, s.Ranks)
		if s.Options != "" {
			fmt.Fprintf(&b, "   %s", s.Options)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	b.WriteString(d.Difference.Text())
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
