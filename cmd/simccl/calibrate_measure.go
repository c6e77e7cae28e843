package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/real/bootstrap"
	"github.com/simccl/simccl/real/cuda"
	"github.com/simccl/simccl/real/device"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// measureFlags are the options of measuring.
type measureFlags struct {
	gpus    int
	budget  time.Duration
	sets    []string
	data    string
	libnccl string
}

func (m *measureFlags) register(c *cobra.Command) {
	m.registerCommon(c)
	c.Flags().StringVar(&m.data, "data", "", "keep the measured times in `DIR` (default a new one beside the file)")
}

func (m *measureFlags) registerCommon(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&m.gpus, "gpus", "g", 0, "use the first `K` GPUs (default all)")
	f.DurationVar(&m.budget, "budget", 170*time.Second, "begin no further setting after this `TIME`")
	f.StringSliceVar(&m.sets, "sets", nil, "measure only these settings, by `NAMES` (default all: "+strings.Join(setNames(), ", ")+")")
	f.StringVar(&m.libnccl, "libnccl", "", "`FILE` of NCCL (default $SIMCCL_LIBNCCL, else libnccl.so.2 of the loader)")
}

// set is one list of settings to measure, in processes of their own.
type set struct {
	name string
	env  []string
	ops  []coll.Func
	// Sizes go from 8 bytes to max by this factor; those of skew are not
	// aligned to 16 bytes a rank.
	max    units.Bytes
	factor int64
	skew   bool
	eager  bool
	pair   bool // two GPUs, where there are more
}

var (
	allOps    = []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce, coll.AllToAll, coll.SendRecv}
	fiveOps   = allOps[:5]
	reduceOps = allOps[:1]
)

// sets are what calibrate measures, the most telling first: NCCL's choices in
// two processes, because kernel gaps differ from process to process; then each
// protocol over all its channels, over one and over eight, trees, two GPUs,
// buffers that are not aligned, and launches without a graph.
func sets() []set {
	forced := func(name, algo, proto string, ops []coll.Func, max units.Bytes, more ...string) set {
		return set{name: name, env: append([]string{"NCCL_ALGO=" + algo, "NCCL_PROTO=" + proto}, more...), ops: ops, max: max, factor: 4}
	}
	all := []set{{name: "default", ops: allOps, max: 1 << 30, factor: 2}}
	protos := []string{"LL", "LL128", "Simple"}
	for i, p := range protos {
		all = append(all, forced("ring-"+p, "Ring", p, fiveOps, []units.Bytes{64 << 20, 1 << 30, 1 << 30}[i]))
	}
	all = append(all, set{name: "default-again", ops: allOps, max: 1 << 30, factor: 2})
	for _, p := range protos {
		all = append(all, forced("one-"+p, "Ring", p, fiveOps, 16<<20, "NCCL_MAX_NCHANNELS=1"))
	}
	for _, p := range protos {
		all = append(all, forced("tree-"+p, "Tree", p, reduceOps, 256<<20))
	}
	for _, p := range protos {
		all = append(all, forced("eight-"+p, "Ring", p, fiveOps[:3], 64<<20, "NCCL_MAX_NCHANNELS=8"))
	}
	return append(all,
		set{name: "pair", ops: allOps, max: 1 << 30, factor: 4, pair: true},
		set{name: "skew", ops: []coll.Func{coll.AllGather, coll.AllToAll}, max: 256 << 20, factor: 8, skew: true},
		set{name: "eager", ops: reduceOps, max: 1 << 20, factor: 4, eager: true})
}

func setNames() []string {
	var out []string
	for _, s := range sets() {
		out = append(out, s.name)
	}
	return out
}

func newCalibrateMeasure(a *app) *cobra.Command {
	var m measureFlags
	c := &cobra.Command{Use: "measure DIR", Short: "Measure this machine for fit or check",
		Long: `measure does the first half of calibrate: it writes nccl-tests' JSON, one file a
setting and operation, and the machine's topology, to DIR.`,
		Example: "  simccl calibrate measure later/ --sets default && simccl calibrate check later/ --machine-class ./h200.json",
		Args:    exactly("DIR"),
		RunE:    func(cmd *cobra.Command, args []string) error { return m.all(cmd.Context(), a, a.path(args[0])) }}
	m.registerCommon(c)
	return c
}

// all measures every set, each in processes of its own, one a GPU.
func (m *measureFlags) all(ctx context.Context, a *app, dir string) error {
	list, err := m.pick()
	if err != nil {
		return err
	}
	n, err := m.count()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return input(err)
	}
	text, err := thisMachine(a)
	if err != nil {
		return err
	}
	if err := newfile.Write(filepath.Join(dir, topoFile), text); err != nil {
		return err
	}
	began := time.Now()
	for _, s := range list {
		if spent := time.Since(began); spent > m.budget {
			fmt.Fprintf(a.err, "simccl: %s and what follows left out: %.0f s of %.0f are spent\n", s.name, spent.Seconds(), m.budget.Seconds())
			break
		}
		ranks := n
		if s.pair {
			ranks = 2
		}
		if s.pair && n == 2 {
			continue // default has measured it
		}
		at := time.Now()
		if err := m.start(ctx, a, &s, ranks, dir); err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
		fmt.Fprintf(a.err, "simccl: measured %s: %.1f s\n", s.name, time.Since(at).Seconds())
	}
	return nil
}

// count is how many GPUs take part.
func (m *measureFlags) count() (int, error) {
	d, err := cuda.Open()
	if err != nil {
		return 0, hardwareError(err)
	}
	n := cmp.Or(m.gpus, d.Count())
	if n < 2 || n > d.Count() {
		return 0, usage("-g %d: from 2 GPUs on, and this machine has %d", n, d.Count())
	}
	return n, nil
}

func (m *measureFlags) pick() ([]set, error) {
	all := sets()
	if len(m.sets) == 0 {
		return all, nil
	}
	var out []set
	for _, name := range m.sets {
		i := slices.IndexFunc(all, func(s set) bool { return s.name == name })
		if i < 0 {
			return nil, usage("--sets %s: there are %s", name, strings.Join(setNames(), ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// start runs a set in a process a GPU and waits for them.
func (m *measureFlags) start(ctx context.Context, a *app, s *set, ranks int, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	port, err := unusedPort()
	if err != nil {
		return err
	}
	key, err := bootstrap.NewSecret() // for this set's processes alone
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, setLimit)
	defer stop()
	args := []string{"calibrate", "set", s.name, dir, "--libnccl", m.libnccl, "--nranks", fmt.Sprint(ranks), "--root-address", fmt.Sprintf("127.0.0.1:%d", port)}
	for _, kv := range a.env {
		args = append(args, "--env", kv)
	}
	var said bytes.Buffer // of rank 0
	procs := make([]*exec.Cmd, ranks)
	for r := range procs {
		p := exec.CommandContext(ctx, self, append(args, "--rank", fmt.Sprint(r))...)
		p.Env = append(append(slices.Clone(a.environ), s.env...), secretName+"="+hex.EncodeToString(key[:]))
		if r == 0 {
			p.Stderr = &said
		}
		if err := p.Start(); err != nil {
			stop()
			return err
		}
		procs[r] = p
	}
	var failed error
	for r, p := range procs {
		if err := p.Wait(); err != nil && failed == nil {
			failed = fmt.Errorf("process %d: %w: %s", r, err, strings.TrimSpace(said.String()))
		}
	}
	var exit *exec.ExitError
	if errors.As(failed, &exit) && exit.ExitCode() > 0 {
		return &statusError{code: exit.ExitCode(), err: failed}
	}
	return failed
}

// setLimit is how long the processes of a set may take; one takes some ten
// seconds.
const setLimit = 90 * time.Second

func unusedPort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// newCalibrateSet is what measure starts: one process of a set.
func newCalibrateSet(a *app) *cobra.Command {
	var p placeFlags
	libnccl := ""
	c := &cobra.Command{Use: "set NAME DIR", Hidden: true, Short: "One process of calibrate measure", Args: exactly("NAME", "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := (&measureFlags{sets: args[:1]}).pick()
			if err != nil {
				return err
			}
			place, err := p.find(a)
			if err != nil {
				return err
			}
			return measureSet(cmd.Context(), a, &list[0], place, libnccl, args[1])
		}}
	p.register(c.Flags())
	c.Flags().StringVar(&libnccl, "libnccl", "", "")
	return c
}

// measureSet measures the operations of a set as one of its processes; that of
// rank 0 writes a file for each.
func measureSet(ctx context.Context, a *app, s *set, at place, libnccl, dir string) (err error) {
	b := &benchFlags{backend: "nccl"}
	b.run.test.threads, b.run.test.ctaPolicy, b.gpu.timing, b.gpu.libnccl = 1, noPolicy, "graph", libnccl
	if s.eager {
		b.gpu.timing = "eager"
	}
	b.run.machine.gpus = 1
	if at.rank < 0 {
		at.nranks = 1
	}
	r := &benchRun{app: a, flags: b, procs: at, began: time.Now()}
	if r.team, err = assemble(ctx, at, max(at.nranks, 1)); err != nil {
		return err
	}
	defer r.team.leave()
	if r.back, err = backends[b.backend](r.team.ctx, r, s.max+skewBytes); err != nil {
		return hardwareError(err)
	}
	for _, f := range s.ops {
		if err = s.measure(r, f, dir); err != nil {
			break
		}
	}
	if cerr := r.back.close(); err == nil {
		err = cerr
	}
	return hardwareError(r.team.give(err))
}

// skewBytes is room for the sizes of a set that are not powers of two.
const skewBytes = 4096

// passes is how often a set goes through its sizes; the median counts.
const passes = 3

// timing is a size with the times of all passes.
type timing struct {
	op    *device.Op
	shown units.Bytes
	times []units.Time
}

// measure goes through the sizes of an operation and writes their times.
func (s *set) measure(r *benchRun, f coll.Func, dir string) error {
	began := time.Now()
	all := s.sizes(f, r.back.ranks())
	for pass := range passes {
		for i := range all {
			t := &all[i]
			m, _, err := r.back.measure(r.team.ctx, t.op, s.options(t.shown, pass == 0))
			if err == nil && m.Wrong > 0 {
				err = failed("%s of %d bytes: %s", f.TestName(), t.shown, m.First)
			}
			if err != nil {
				return err
			}
			t.times = append(t.times, m.Time)
		}
	}
	if r.team.rank != 0 {
		return nil
	}
	return s.keep(r, filepath.Join(dir, s.name+"."+f.TestName()+".json"), all, began)
}

// sizes lists what is measured of an operation.
func (s *set) sizes(f coll.Func, ranks int) []timing {
	var all []timing
	for size := units.Bytes(8); size <= s.max; size *= units.Bytes(s.factor) {
		sizes := coll.TestSizes(f, size, coll.Float32, ranks)
		if s.skew {
			sizes = coll.ExactSizes(f, size+units.Bytes(4*ranks), coll.Float32, ranks)
		}
		if sizes.Count > 0 {
			all = append(all, timing{op: &device.Op{Func: f, Type: coll.Float32, Red: coll.Sum, Sizes: sizes}, shown: sizes.Bytes(coll.Float32)})
		}
	}
	return all
}

// options are 20 operations a graph, as the simulator reckons and nccl-tests
// does by default, and as many replays as keep the start of the first from
// showing.
func (s *set) options(size units.Bytes, check bool) device.Options {
	o := device.Options{Iters: 20, Warmup: 2, Replays: 10, Average: device.OfAll, Seed: 1}
	switch {
	case s.eager:
		o.Replays, o.Iters = 0, 200
	case size > 128<<20:
		o.Replays = 1
	case size > 4<<20:
		o.Replays = 3
	}
	if check {
		o.Check = 1
	}
	return o
}

// keep writes the times of an operation as nccl-tests' JSON.
func (s *set) keep(r *benchRun, file string, all []timing, began time.Time) error {
	o := s.options(0, false)
	doc := &nccltests.Report{Start: began.UTC().Format(jsonTime), End: time.Now().UTC().Format(jsonTime), Env: r.ncclEnv(),
		Devices: r.back.devices(), Args: []string{"simccl", "bench", all[0].op.Func.TestName()}, Summary: nccltests.Summary{MinBW: -1},
		Config: nccltests.Config{NCCLHeaders: ncclRules().Code(), NCCLLibrary: r.libraryVersion(), Threads: 1, GPUs: 1, MinBytes: int64(all[0].shown),
			MaxBytes: int64(all[len(all)-1].shown), StepFactor: s.factor, Warmup: o.Warmup, Iters: o.Iters, AggIters: 1, Check: 1, Graph: o.Replays}}
	for _, t := range all {
		row := nccltests.Row{Size: int64(t.shown), Count: t.op.Sizes.Count, Type: t.op.Type.TestName(), RedOp: "none", Root: -1}
		if t.op.Func.PrintsRedOp() {
			row.RedOp = t.op.Red.TestName()
		}
		if t.op.Func.Rooted() {
			row.Root = t.op.Root
		}
		each := make([]float64, len(t.times))
		for i, d := range t.times {
			each[i] = d.Micros()
		}
		own, err := json.Marshal(map[string]any{"passes_us": each})
		if err != nil {
			return err
		}
		slices.Sort(t.times)
		middle := t.times[len(t.times)/2]
		row.Out = nccltests.Measure{TimeUs: middle.Micros(), Checked: true}
		row.Out.AlgBW, row.Out.BusBW = coll.Bandwidth(t.op.Func, t.op.Sizes.Count, t.op.Type, r.back.ranks(), middle)
		doc.Summary.AvgBusBW += row.Out.BusBW / float64(len(all))
		doc.Rows, doc.Own = append(doc.Rows, row), append(doc.Own, string(own))
	}
	var text bytes.Buffer
	if err := nccltests.WriteJSON(&text, doc); err != nil {
		return err
	}
	text.WriteByte('\n')
	return newfile.Write(file, text.Bytes())
}

// all measures, then fits.
func (c *calibrateFlags) all(a *app, cmd *cobra.Command) error {
	if _, err := c.measure.count(); err != nil { // before anything is written
		return err
	}
	if err := c.writable(a); err != nil {
		return err
	}
	dir := c.measure.data
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp(filepath.Dir(a.path(c.out)), strings.TrimSuffix(filepath.Base(c.out), ".json")+"-times-"); err != nil {
			return input(err)
		}
	} else {
		dir = a.path(dir)
	}
	if err := c.measure.all(cmd.Context(), a, dir); err != nil {
		return err
	}
	return c.fit(a, cmd, dir)
}
