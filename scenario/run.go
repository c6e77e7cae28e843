package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/pairs"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// ErrGrid: a Spec with a grid was given where one point is run. Expand it.
var ErrGrid = errors.New("the scenario has a grid; run its points one by one")

// Run simulates a Spec without a grid and writes its Outputs.
func Run(ctx context.Context, spec Spec, opt Options) (*Result, error) {
	r, err := Prepare(spec, opt)
	if err != nil {
		return nil, err
	}
	r.Records = true
	for _, err := range r.Rows(ctx) {
		if err != nil {
			return nil, err
		}
	}
	return r.Result(), r.Write(ctx, Listener{})
}

// RunOn simulates a Spec on a machine that is already loaded: that of another Spec
// with the same Machine, NCCL and Network. Several may run on one Site.
func RunOn(ctx context.Context, site *Site, spec Spec, opt Options) (*Result, error) {
	r, err := On(site, spec, opt)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	r.Records = true
	for _, err := range r.Rows(ctx) {
		if err != nil {
			return nil, err
		}
	}
	return r.Result(), r.Write(ctx, Listener{})
}

// Running is a Spec that was loaded and is ready to be simulated.
type Running struct {
	Spec Spec
	Site *Site

	opt    Options
	fn     coll.Func
	sizes  []Size
	types  []coll.DataType
	redops []coll.RedOp
	roots  []int
	pool   atomic.Pointer[pool]
	rows   []Row
	cores  int // that one simulation may use: what others of the run leave idle
	// parts are what was simulated of large operations, shared by the sizes of a sweep.
	parts sim.Windows
	// proofs are which plans of a few iterations were proved, shared likewise.
	proofs check.Proofs
	lines  []Line // rows to come
	// recorded has the events of the operation that Write writes, where Records is set.
	recorded atomic.Pointer[traced]
	// Records has Rows keep the events of a row that Write would simulate again only for
	// them; Write must follow then.
	Records bool
	// OfDraws is how many draws of hashed routes are simulated where they matter, 1 or 5; 0: 5, and
	// settings that spread queue pairs where they differ much.
	OfDraws int

	planner Planner           // of Options
	change  func(*sim.Config) // of vary, and Adaptive
	seedsMu sync.Mutex
	seeds   map[uint64]*Running // runs of draws
}

// Prepare validates a Spec, loads its machine and checks all that can be checked
// before time is spent on simulation.
func Prepare(spec Spec, opt Options) (*Running, error) {
	if len(spec.Grid) > 0 {
		return nil, ErrGrid
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if spec.Workload.IsJob() {
		return nil, &FieldError{Path: "workload.job", Value: spec.Workload.Job,
			Problem: "a job has no table of sizes", Hint: "run it with scenario.RunJob"}
	}
	site, err := Load(&spec, opt)
	if err != nil {
		return nil, err
	}
	r, err := On(site, spec, opt)
	if err != nil {
		return nil, err
	}
	return r, r.check()
}

// check refuses what cannot be simulated.
func (r *Running) check() error {
	if err := r.Site.Comm.CheckNets(); err != nil {
		return err
	}
	if w := r.Site.Comm.PeerWarning(); w != "" && r.fn.IsP2P() {
		r.opt.warn(errors.New(w))
	}
	r.misplaced()
	for _, w := range []string{r.Site.Comm.Unverified(), r.Site.Comm.NICWarning(), r.ginWarning()} {
		if w != "" {
			r.opt.warn(errors.New(w))
		}
	}
	if _, err := r.traceOptions(); err != nil {
		return err
	}
	_, err := r.Site.Executor(&r.Spec, nccl.Options{}, nil)
	return err
}

// misplaced warns where NCCL's own result is wrong at one of the sizes.
func (r *Running) misplaced() {
	w := r.Site.Comm.HeadWarning()
	if w == "" || r.fn != coll.AllGather && r.fn != coll.ReduceScatter {
		return
	}
	for i := range r.lines {
		if _, c, err := r.Site.Comm.Request(r.Op(r.lines[i].Operation)); err == nil && c.Algo == coll.NVLS {
			r.opt.warn(errors.New(w))
			return
		}
	}
}

// On prepares a Spec for a machine that is already loaded: that of another Spec
// with the same Machine, NCCL and Network. It does not look whether the machine
// can be simulated.
func On(site *Site, spec Spec, opt Options) (*Running, error) {
	r := &Running{Spec: spec, Site: site, opt: opt}
	w := &r.Spec.Workload
	var err error
	if r.fn, err = coll.ParseFunc(w.Op); err != nil {
		return nil, &FieldError{Path: "workload.op", Value: w.Op, Problem: err.Error()}
	}
	if r.sizes, err = w.AllSizes(); err != nil {
		return nil, err
	}
	if r.types, err = w.AllTypes(); err != nil {
		return nil, err
	}
	if r.redops, err = w.AllReductions(r.fn); err != nil {
		return nil, err
	}
	if r.roots, err = w.AllRoots(r.fn, site.Comm.NRanks); err != nil {
		return nil, err
	}
	if opt.Planner != nil {
		if r.planner, err = opt.Planner(site, r.fn); err != nil {
			return nil, err
		}
		r.Spec.Engine.Fold = "off"
	}
	return r, r.list()
}

// Func is the operation.
func (r *Running) Func() coll.Func { return r.fn }

// Operation is one operation to simulate; equal ones are simulated once.
type Operation struct {
	Type    coll.DataType
	RedOp   coll.RedOp
	Root    int
	Count   int64
	InPlace bool
	Pairs   *coll.Pairs // of an all_to_all_v of unequal counts, whose mean is Count
}

// Op is the operation as the communicator plans it.
func (o Operation) Op(f coll.Func) comm.Op {
	return comm.Op{Func: f, Count: o.Count, Type: o.Type, RedOp: o.RedOp, Root: int32(o.Root),
		InPlace: o.InPlace, Pairs: o.Pairs}
}

// Line is a row to come.
type Line struct {
	Operation             // out of place
	Shown     units.Bytes // the size as it is shown
	Column    int         // the root as it is shown, -1 for none
}

// Lines lists the rows in nccl-tests' order.
func (r *Running) Lines() []Line { return slices.Clone(r.lines) }

func (r *Running) list() error {
	parts := r.Spec.Workload.Pairs(r.Spec.seed())
	for _, typ := range r.types {
		for _, op := range r.redops {
			for _, root := range r.roots {
				for range max(r.Spec.Workload.Cycles, 1) {
					for _, sz := range r.sizes {
						count, shown := sz.Count(r.fn, typ, r.Site.Comm.NRanks)
						l := Line{Operation{Type: typ, RedOp: op, Root: max(root, 0), Count: count}, shown,
							root}
						if err := r.divide(&l, &parts); err != nil {
							return err
						}
						r.lines = append(r.lines, l)
					}
				}
			}
		}
	}
	return nil
}

// Rows simulates and yields the rows in order, each as soon as it is there. An
// error ends them.
func (r *Running) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		lines := r.Lines()
		r.pool.Store(r.start(ctx, lines))
		for _, l := range lines {
			row, err := r.row(l)
			if err == nil {
				r.rows = append(r.rows, *row)
			}
			if !yield(row, err) || err != nil {
				stop()
				r.forget()
				return
			}
		}
	}
}

// Share is the part of all operations that has been simulated, 0 to 1.
func (r *Running) Share() float64 {
	if p := r.pool.Load(); p != nil {
		return p.share()
	}
	return 0
}

// Outcome returns what became of an operation of Lines, and waits for it. Rows
// must have been called.
func (r *Running) Outcome(o Operation) (Outcome, error) { return r.pool.Load().wait(o) }

// row sums up the two simulations of a line.
func (r *Running) row(l Line) (*Row, error) {
	row := Row{Func: r.Name(), Type: l.Type.TestName(), Root: l.Column, Bytes: l.Shown, Count: l.Count,
		Operation: l.Operation}
	if r.fn.PrintsRedOp() {
		row.RedOp = l.RedOp.TestName()
	}
	at := l.Operation
	var first Outcome
	var wider exec.Account // of which the margin is the wider
	for i, m := range []*Measure{&row.Out, &row.In} {
		at.InPlace = i == 1
		o, err := r.Outcome(at)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = o
		}
		if o.Result.Account.Margin > wider.Margin {
			wider = o.Result.Account
		}
		alg, bus := coll.Bandwidth(r.fn, at.Count, at.Type, r.Site.Comm.NRanks, o.Result.Elapsed)
		*m = Measure{Time: cmp.Or(o.Host, o.Result.Elapsed), AlgBW: alg, BusBW: bus, Checked: o.Checked,
			First: o.Result.Last()}
		if o.Plan != nil && !o.OfSchedule {
			m.Wrong = o.Plan.Wrong()
		}
	}
	row.Facts = r.Facts(&first, row.Out.BusBW)
	row.Facts.Margin, row.Facts.Near = wider.Margin, cmp.Or(wider.Note, row.Facts.Near)
	row.Facts.Counts = pairs.SpreadOf(r.Spec.Workload.Op, l.Pairs, l.Count, r.Site.Comm.NRanks)
	return &row, nil
}

// Result sums up the rows that were yielded.
func (r *Running) Result() *Result {
	out := &Result{Format: FormatVersion, Digest: r.Site.digest(&r.Spec), Spec: r.Spec,
		NCCL: r.Site.Config.Rules.Version(), Rows: r.rows, Notes: r.notes(),
		Machine: MachineInfo{Name: r.Site.Name, SHA256: r.Site.Digest, Ranks: r.Site.Comm.NRanks,
			Nodes: r.Site.Comm.NNodes,
			Class: r.Site.Class().Name, Uncertainty: r.Site.Uncertainty()}}
	for i := range r.rows {
		out.AvgBusBW += (r.rows[i].Out.BusBW + r.rows[i].In.BusBW) / float64(2*len(r.rows))
	}
	return out
}

// notes name the approximations of the rows, each once.
func (r *Running) notes() []string {
	var out []string
	for i := range r.rows {
		f := &r.rows[i].Facts
		if note := fmt.Sprintf("within about %.0f %%: %s", 100*f.Margin, f.Near); f.Near != "" &&
			!slices.Contains(out, note) {
			out = append(out, note)
		}
	}
	for i := range r.rows {
		if f := &r.rows[i].Facts; f.NotProved != "" {
			out = append(out, fmt.Sprintf("%d bytes: the plan is not proved: %s", r.rows[i].Bytes,
				f.NotProved))
		}
	}
	return out
}

// Plan chooses and plans one operation. With prove it proves the plan unless the
// Spec forbids it or the plan is too large. It is safe for concurrent use.
func (r *Running) Plan(o Operation, prove bool) (Outcome, error) {
	return r.planned(o, prove, prove)
}

// Scheduled is the plan that Options.Planner makes of an operation; nil: NCCL's is taken.
func (r *Running) Scheduled(op comm.Op) (*plan.Plan, error) {
	if r.planner == nil {
		return nil, nil
	}
	return r.planner(op)
}

// planned is Plan; kernels over windows and NCCL's other plans are proved apart.
func (r *Running) planned(o Operation, windows, plans bool) (Outcome, error) {
	if r.planner != nil && coll.Variable(r.Spec.Workload.Op) {
		return Outcome{}, &OperationError{r.fn, o.Count, &plan.UnsupportedError{What: "a schedule for " +
			coll.AllToAllV, Why: "schedules have equal parts; write alltoall"}}
	}
	pl, err := r.Scheduled(r.Op(o))
	if err != nil {
		return Outcome{}, &OperationError{r.fn, o.Count, err}
	}
	if pl != nil {
		out := Outcome{Plan: pl, Checked: true, OfSchedule: true} // proven where it was read
		out.Choice.Algo, out.Choice.Proto = pl.Req.Algo, pl.Req.Proto
		return out, nil
	}
	if out, ok, err := r.windows(o, windows); ok || err != nil {
		return out, err
	}
	switch h, err := r.hierarchical(o); {
	case err != nil:
		return Outcome{}, &OperationError{r.fn, o.Count, err}
	case h != nil:
		out := Outcome{hierarchy: h}
		if plans {
			err = r.prove(o, &out)
		}
		return out, err
	}
	c := r.Site.Comm
	if r.grouped() {
		c = c.Grouped()
	}
	pl, choice, err := c.Plan(r.Op(o))
	if err != nil {
		return Outcome{}, &OperationError{r.fn, o.Count, err}
	}
	out := Outcome{Choice: choice, Plan: pl}
	if plans {
		err = r.prove(o, &out)
	}
	return out, err
}

// OperationError is an operation that cannot be chosen for or planned.
type OperationError struct {
	Func  coll.Func
	Count int64
	Err   error
}

func (e *OperationError) Error() string {
	return fmt.Sprintf("%s of %d elements: %v", e.Func.TestName(), e.Count, e.Err)
}

// Unwrap returns the cause.
func (e *OperationError) Unwrap() error { return e.Err }

// Simulate plans and runs one operation; progress may be nil. It is safe for
// concurrent use. A sink other than trace.Discard gets its events.
func (r *Running) Simulate(ctx context.Context, o Operation, sink trace.Sink, opt nccl.Options,
	progress func(float64)) (Outcome, error) {
	if o.Count == 0 { // NCCL returns without a launch
		return Outcome{Checked: !r.Spec.Engine.NoProof}, nil
	}
	out, err := r.planned(o, sink == trace.Discard, false)
	if err != nil {
		return Outcome{}, err
	}
	if r.grouped() {
		out, err = r.group(ctx, o, out, progress)
	} else {
		out, err = r.execute(ctx, out, sink, opt, progress)
	}
	// last: a proof of a million ranks takes longer than to refuse them
	if err == nil && sink == trace.Discard {
		if err = r.prove(o, &out); err == nil {
			err = r.beside(ctx, o, &out)
		}
	}
	return out, err
}

func (r *Running) execute(ctx context.Context, o Outcome, sink trace.Sink, opt nccl.Options,
	progress func(float64)) (Outcome, error) {
	if r.Spec.Engine.Fidelity == "alpha" {
		return r.formula(o, sink)
	}
	if o.Kernel != nil || o.Copies != nil || o.Peer != nil {
		return r.lockstep(ctx, o, sink)
	}
	if o.hierarchy != nil {
		return o.hierarchy.simulate(ctx, o, sink)
	}
	cfg, err := r.simConfig()
	if err != nil {
		return Outcome{}, err
	}
	cfg.Trace, cfg.Progress, cfg.Windows, cfg.Cores = opt, progress, &r.parts, r.cores
	x, err := sim.New(cfg)
	if err != nil {
		return Outcome{}, err
	}
	o.Result, err = x.Run(ctx, exec.One(o.Plan), sink)
	r.hostTimed(&o, o.Result.Finish, []*plan.Plan{o.Plan}, 1)
	return o, err
}

// formula gives an operation the time of NCCL's own model: latency, and bytes
// over bandwidth.
func (r *Running) formula(o Outcome, sink trace.Sink) (Outcome, error) {
	if sink != trace.Discard {
		return Outcome{}, &exec.NotImplementedError{Feature: "fidelity alpha with a trace",
			Missing: "a formula has no events; write step"}
	}
	elapsed := units.FromMicros(o.modelUs())
	o.Result = exec.Result{Elapsed: elapsed, Finish: slices.Repeat([]units.Time{elapsed}, r.Site.Comm.NRanks),
		Wrong: -1, Account: exec.Account{Method: exec.Formula}}
	if r.Site.Comm.NRanks == 1 {
		return Outcome{}, &exec.NotImplementedError{Feature: "fidelity alpha of one rank",
			Missing: "NCCL copies and has no formula for it; write step"}
	}
	if o.Result.Elapsed <= 0 {
		return Outcome{}, &exec.NotImplementedError{Feature: "fidelity alpha for " + r.fn.TestName(),
			Missing: "NCCL has no formula for send and receive"}
	}
	return o, nil
}

// Devices lists the GPUs by rank.
func (m *Site) Devices() []Device {
	if m.split != nil {
		return listDevices(m.Cluster, m.split.whole.NodeOf, m.split.colours)
	}
	return listDevices(m.Cluster, m.Comm.NodeOf, nil)
}
