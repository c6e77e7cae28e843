// Package advise simulates an operation or a job with each setting that a user of NCCL may change, and
// reports which settings make it faster, at which sizes, and how certain that is. In: a Spec. Out: a Report,
// as text or JSON.
//
// What it must not know: flags, terminals.
package advise

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Request is an operation or job, the machine, and the settings to try.
type Request struct {
	// Spec is the operation and its sizes, or a job, on a machine.
	Spec    scenario.Spec
	Options scenario.Options
	// Try lists settings to try in addition to the built-in ones.
	Try []Setting
	// Kernels: symmetric windows and kernels of serving are tried too, which applications call for.
	Kernels bool
	// Least is the least gain that is worth a line, 1.03 for 3 %; 0: worthwhile.
	Least float64
	// Within, if not nil, is called before settings are tried and returns a context that ends when the time
	// is used up. The most promising settings are tried first; the Report has the number of those not tried.
	Within func(context.Context) (context.Context, context.CancelFunc)
	// Found, if not nil, is called with each setting that gains as soon as it is simulated.
	Found func(f Found)
	// Begin, if not nil, is called with the number of settings to try; the function that it returns is called
	// after each.
	Begin func(total int) (step func())
}

// Found reports a setting that makes some size faster, while the search runs.
type Found struct {
	Line   string  // as Advice has it
	Bytes  int64   // the size at which it gains most
	Us, Is float64 // the time there without it, and with it
	Tried  int     // settings so far
	Of     int
}

// worthwhile is the least gain that is advised: the difference of two runs with equal settings
// (docs/results/ACCURACY.md, another machine of the kind).
const worthwhile = 1.03

// Setting is one or two environment variables with values, or an action if there is no variable.
type Setting struct {
	Env  [][2]string // NAME and value; without a variable, the action
	kind kind
	// says is the action if there is no variable to set.
	says string
	Risk string // side effects
}

// Name returns the names of the variables, joined by commas.
func (s *Setting) Name() string { return s.join(0) }

// Value returns the values, joined by commas.
func (s *Setting) Value() string { return s.join(1) }

func (s *Setting) join(i int) string {
	var parts []string
	for _, kv := range s.Env {
		parts = append(parts, kv[i])
	}
	return strings.Join(parts, ",")
}

// export returns the setting as a line of a shell.
func (s *Setting) export() string {
	if s.says != "" {
		return s.says
	}
	return "export " + strings.Join(s.Lines(), " ")
}

// Lines returns the setting as lines of /etc/nccl.conf.
func (s *Setting) Lines() []string {
	var parts []string
	for _, kv := range s.Env {
		parts = append(parts, kv[0]+"="+kv[1])
	}
	return parts
}

// Row is one size as it is now, and as it is best.
type Row struct {
	Bytes    int64   `json:"bytes"`
	Us       float64 `json:"us"`
	Choice   string  `json:"choice"`
	Channels int     `json:"nchannels"`
	LeastUs  float64 `json:"leastUs,omitempty"` // of draws of hashed routes, of which Us is the median
	MostUs   float64 `json:"mostUs,omitempty"`
	Best     string  `json:"best,omitempty"` // the setting, NAME=value
	BestUs   float64 `json:"bestUs"`
}

// Advice is the gain of one setting over a range of sizes.
type Advice struct {
	Setting string   `json:"setting"`
	Value   string   `json:"value"`
	Sizes   [2]int64 `json:"sizes"`
	// Gain is the time without the setting over that with it, the geometric mean over
	// the sizes that were tried.
	Gain float64 `json:"gain"`
	// Uncertainty is the relative uncertainty of Gain: 0.05 for 5 %.
	Uncertainty float64 `json:"uncertainty"`
	Line        string  `json:"line"` // to write in a shell
	// Changes describes what NCCL does differently, at the smallest of the sizes.
	Changes string `json:"changes,omitempty"`
	Risk    string `json:"risk,omitempty"`
}

// sure reports whether the gain is larger than its uncertainty.
func (a *Advice) sure() bool { return a.Gain-1 > a.Uncertainty }

// Refusal is a setting with which NCCL or the simulator ends.
type Refusal struct {
	Setting string `json:"setting"`
	Why     string `json:"why"`
}

// Report lists the settings that gain, best first, and what was tried.
type Report struct {
	What    string    `json:"what"`
	Rows    []Row     `json:"rows"`
	Advice  []Advice  `json:"advice"`
	Tried   int       `json:"tried"`
	Untried int       `json:"untried,omitempty"` // for lack of time
	Refused []Refusal `json:"refused"`

	trials []trial
	base   *trial
	site   *scenario.Site
	op     string   // of a sweep
	job    [2]int64 // of a job, the least and the most bytes of its calls
}

// trial is a setting with its results by size.
type trial struct {
	Setting
	cells []cell
	job   [2]int64 // of a job, the least and the most bytes of its calls
}

// cell is the result at one size: the time, and NCCL's choice.
type cell struct {
	bytes    int64
	time     units.Time
	choice   string
	channels int
	algo     string // "RING/LL"; empty where nothing is chosen
	// least and most are the times of the fastest and the slowest draw of hashed routes, in us; 0 if the draw
	// does not matter.
	least, most float64
	op          tuning.Op
}

// text formats the choice and its number of channels.
func (c *cell) text() string {
	if c.channels == 0 {
		return c.choice
	}
	return fmt.Sprintf("%s, %d channels", strings.TrimSuffix(c.choice, " -"), c.channels)
}

// gain returns the time of base divided by the time of t at size i.
func (t *trial) gain(base *trial, i int) float64 {
	if t.cells[i].time <= 0 {
		return 1
	}
	return float64(base.cells[i].time) / float64(t.cells[i].time)
}

// New simulates the settings. It returns an error if the operation fails without any of them; a setting that
// fails is a Refusal.
func New(ctx context.Context, q Request) (*Report, error) {
	q.Spec.Engine.NoProof = true
	base, site, err := q.run(ctx, nil)
	if err != nil {
		return nil, err
	}
	q.Options.Warn = nil // said once
	r := &Report{What: what(&q.Spec), op: q.Spec.Workload.Op, job: base.job, base: base, site: site,
		Refused: []Refusal{}, Advice: []Advice{}}
	all := append(slices.Clone(q.Try), q.candidates(site, base)...)
	if q.Least <= 0 {
		q.Least = worthwhile
	}
	if err := q.try(ctx, r, all); err != nil {
		return nil, err
	}
	r.choose(q.Least)
	return r, nil
}

// try simulates settings, the most promising first, until the time is used up.
func (q *Request) try(ctx context.Context, r *Report, all []Setting) error {
	step := func() {}
	if q.Begin != nil {
		step = q.Begin(len(all))
	}
	within := ctx
	if q.Within != nil {
		var cancel context.CancelFunc
		within, cancel = q.Within(ctx)
		defer cancel()
	}
	trials, refused := make([]*trial, len(all)), make([]*Refusal, len(all))
	for n, i := range promising(all, r.site) {
		t, _, err := q.run(within, &all[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if within.Err() != nil {
			r.Untried = len(all) - n
			break
		}
		switch {
		case err != nil:
			refused[i] = &Refusal{strings.Join(all[i].Lines(), " "), firstLine(err)}
		case len(t.cells) == len(r.base.cells):
			trials[i] = t
			q.found(r, t, n+1, len(all))
		}
		step()
	}
	for i := range all { // in their order: the simpler ones first
		if trials[i] != nil {
			r.trials = append(r.trials, *trials[i])
		}
		if refused[i] != nil {
			r.Refused = append(r.Refused, *refused[i])
		}
	}
	r.Tried = len(all) - r.Untried
	return nil
}

// found calls q.Found if a setting gains at some size.
func (q *Request) found(r *Report, t *trial, tried, of int) {
	if q.Found == nil {
		return
	}
	best := 0
	for i := range t.cells {
		if t.gain(r.base, i) > t.gain(r.base, best) {
			best = i
		}
	}
	if t.gain(r.base, best) >= q.Least {
		q.Found(Found{t.export(), t.cells[best].bytes, r.base.cells[best].time.Micros(),
			t.cells[best].time.Micros(), tried, of})
	}
}

// promising returns the order in which settings are tried: the user's first, over a network queue pairs, then
// choices, channels and the rest.
func promising(all []Setting, site *scenario.Site) []int {
	ranks := map[kind]int{own: 0, switches: 1, nics: 4, choice: 2, channels: 3, multicast: 5, buffers: 6,
		relays: 7, threads: 8, kernels: 9}
	if site.Network != nil {
		ranks[nics] = 1
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(ranks[all[a].kind], ranks[all[b].kind])
	})
	return order
}

// what names the operation or job.
func what(s *scenario.Spec) string {
	if s.Workload.Job != "" {
		return s.Workload.Job
	}
	return s.Workload.Op
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// with returns the Spec with a setting applied. NCCL_TOPO_FILE replaces the topology of all nodes.
func with(spec *scenario.Spec, s *Setting) scenario.Spec {
	out := spec.Clone()
	if s == nil {
		return out
	}
	if out.NCCL.Env == nil {
		out.NCCL.Env = map[string]string{}
	}
	switch {
	case s.kind == switches:
		return out
	case s.kind == kernels && s.Env[0][0] == "buffers":
		out.Workload.Buffers = s.Env[0][1]
		return out
	case s.kind == kernels:
		out.Workload.Kernel = s.Env[0][1]
		return out
	}
	for _, kv := range s.Env {
		if kv[0] != "NCCL_TOPO_FILE" {
			out.NCCL.Env[kv[0]] = kv[1]
			continue
		}
		if len(out.Machine.Nodes) == 0 {
			out.Machine.Nodes = []scenario.Nodes{{Count: 2}}
		}
		for i := range out.Machine.Nodes {
			out.Machine.Nodes[i].Topo = kv[1]
		}
	}
	return out
}

// run simulates all sizes, or the job, under a setting; nil: as it is.
func (q *Request) run(ctx context.Context, s *Setting) (*trial, *scenario.Site, error) {
	spec := with(&q.Spec, s)
	t := &trial{}
	if s != nil {
		t.Setting = *s
	}
	if spec.Workload.Job != "" {
		return q.runJob(ctx, spec, t)
	}
	r, err := scenario.Prepare(spec, q.Options)
	if err != nil {
		return nil, nil, err
	}
	r.OfDraws = 5 // of a setting the median draw alone
	if s != nil {
		r.OfDraws = 1
		if s.kind == switches {
			r.Adaptive()
		}
	}
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return nil, nil, err
		}
		f := &row.Facts
		c := cell{bytes: int64(row.Bytes), time: row.Out.Time, choice: f.Algo + " " + f.Proto,
			channels: f.Channels,
			op: tuning.Op{Func: r.Func(), Count: row.Operation.Count, Type: row.Operation.Type,
				RedOp: row.Operation.RedOp, Registered: spec.Engine.Launch == "graph"}}
		if d := f.Draws; d != nil && s == nil {
			c.least, c.most = d.LeastUs, d.MostUs
		}
		if f.Proto != "-" {
			c.algo = f.Algo + "/" + f.Proto
		}
		t.cells = append(t.cells, c)
	}
	if len(t.cells) == 0 {
		return nil, nil, fail.Usage("%s: no sizes", spec.Workload.Op)
	}
	return t, r.Site, nil
}

// runJob simulates a job as a single cell.
func (q *Request) runJob(ctx context.Context, spec scenario.Spec, t *trial) (*trial, *scenario.Site, error) {
	res, err := scenario.RunJob(ctx, spec, q.Options)
	if err != nil {
		return nil, nil, err
	}
	c := cell{time: res.Elapsed(), choice: fmt.Sprintf("%d calls", len(res.Program.Calls))}
	for i := range res.Program.Calls {
		n := int64(res.Program.Calls[i].Bytes())
		if i == 0 {
			t.job = [2]int64{n, n}
		}
		t.job = [2]int64{min(t.job[0], n), max(t.job[1], n)}
	}
	c.bytes = t.job[0]
	t.cells = []cell{c}
	if t.Env != nil {
		return t, nil, nil
	}
	job := spec.Clone()
	job.Workload = scenario.Workload{}
	site, err := scenario.Load(&job, q.Options)
	return t, site, err
}
