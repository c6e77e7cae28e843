package bench

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/internal/nccl"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
)

// DeviceConfig says which GPUs take part and which kernels they run.
type DeviceConfig struct {
	Own     bool   // our own kernels instead of NCCL's
	Algo    string // for our kernels: auto, plan or a free algorithm
	Compare bool   // measure NCCL too, for comparison
	Trace   bool   // a trace will be requested
	Library string // path of NCCL's library; empty: SIMCCL_LIBNCCL, else the loader's
	GPUs    int    // per thread; 0: one if there are other processes, else all
	Threads int    // threads of this process
	// Env are variables for NCCL in addition to the environment's, NAME=VALUE.
	Env     []string
	Getenv  func(name string) (string, bool)
	Headers int         // version of NCCL's headers, as nccl-tests prints it
	Buffer  units.Bytes // buffer size of the largest operation; 0: from the spec
}

// gpus is the backend that measures NCCL and our own kernels on GPUs.
type gpus struct {
	spec     *Spec
	team     *team.Team
	cfg      *DeviceConfig
	session  *device.Session
	open     device.Config
	lib      *nccl.Lib
	driver   *cuda.Driver
	all      []nccltests.Device
	by       device.Method
	auto     bool
	newModel NewModel
	model    Model
	plans    map[device.Case]*plan.Plan
	picked   map[device.Case]picked
	last     device.Method  // the method of the previous size
	events   *nccl.Profiler // set if a trace is requested
}

// OpenDevices makes the backend of GPUs.
func OpenDevices(ctx context.Context, spec *Spec, t *team.Team, c DeviceConfig, model NewModel) (Backend,
	error) {
	g := &gpus{spec: spec, team: t, cfg: &c, by: device.NCCL, newModel: model,
		plans:  map[device.Case]*plan.Plan{},
		picked: map[device.Case]picked{}, last: device.NCCL}
	if err := g.libraries(); err != nil {
		return nil, err
	}
	local := c.local(g.driver, t)
	before, err := beforeHere(t)
	if err != nil {
		return nil, err
	}
	first := before * local
	if first+local > g.driver.Count() {
		return nil, team.Refuse("-g %d: this machine has %d GPUs, and %d processes before this one use %d",
			local, g.driver.Count(), before, first)
	}
	buffer := c.Buffer
	if buffer == 0 {
		buffer = spec.buffer(local * t.NRanks)
	}
	g.open = device.Config{Driver: g.driver, NCCL: g.lib, Free: c.Own && g.by != device.Planned, Plans: c.Own,
		First: t.Rank * local,
		Ranks: local * t.NRanks, Boot: t.Boot, Buffer: buffer, Register: spec.Register, Unalign: spec.Unalign}
	for i := range local {
		g.open.GPUs = append(g.open.GPUs, first+i)
	}
	if g.session, err = device.Open(ctx, g.open); err != nil {
		return nil, err
	}
	if g.all, err = g.gather(); err != nil {
		_ = g.session.Close()
		return nil, err
	}
	return g, nil
}

// libraries opens the driver, and NCCL's library if it runs or is compared with.
func (g *gpus) libraries() (err error) {
	c := g.cfg
	if g.driver, err = cuda.Open(); err != nil {
		return err
	}
	if c.Own {
		if g.by, g.auto, err = parseMethod(c.Algo); err != nil {
			return err
		}
		if _, err := c.profiler(); err != nil {
			return err
		}
		if !c.Compare {
			return nil
		}
	}
	if err := passEnv(c.Env); err != nil {
		return err
	}
	if !c.Own {
		if g.events, err = c.profiler(); err != nil {
			return err
		}
	}
	path := c.Library
	if v, ok := c.Getenv("SIMCCL_LIBNCCL"); ok && path == "" {
		path = v
	}
	g.lib, err = nccl.Open(path)
	return err
}

// local returns the number of GPUs of this process.
func (c *DeviceConfig) local(d *cuda.Driver, t *team.Team) int {
	threads := max(c.Threads, 1)
	switch {
	case c.GPUs > 0:
		return c.GPUs * threads
	case t.NRanks == 1 && threads == 1:
		return d.Count()
	}
	return threads
}

// beforeHere returns the number of processes of lower rank on this host: they use the GPUs before this one's
// (as in nccl-tests, common.cu).
func beforeHere(t *team.Team) (int, error) {
	host, err := os.Hostname()
	if err != nil || t.Boot == nil {
		return 0, err
	}
	all, err := team.Gather(t, host)
	n := 0
	for _, h := range all[:min(t.Rank, len(all))] {
		if h == host {
			n++
		}
	}
	return n, err
}

// passEnv sets NCCL's variables in C's environment, which the library reads instead of Go's.
func passEnv(list []string) error {
	for _, kv := range list {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "NCCL_") {
			if err := nccl.Setenv(k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownMethods are the methods with our own kernels.
var ownMethods = []device.Method{device.Planned, device.Free(cuda.OneShot), device.Free(cuda.TwoWords),
	device.Free(cuda.TwoShot),
	device.Free(cuda.Push), device.Free(cuda.Direct), device.Free(cuda.Copies),
	device.Free(cuda.Words), device.Free(cuda.Lines), device.Free(cuda.Relay)}

// parseMethod returns the method of a name; auto means that methods are compared.
func parseMethod(s string) (by device.Method, auto bool, err error) {
	if s == "auto" {
		return 0, true, nil
	}
	for _, m := range ownMethods {
		if s == m.String() {
			return m, false, nil
		}
	}
	return 0, false, team.Refuse("--algo %s: write auto, plan, one-shot, two-words, two-shot, push, "+
		"direct, copies, words, lines or relay", s)
}

// gather sends every process the list of all devices.
func (g *gpus) gather() ([]nccltests.Device, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	var mine, all []nccltests.Device
	for _, d := range g.session.GPUs() {
		bus := strings.ToLower(d.BusID)
		if cut := strings.LastIndexByte(bus, '.'); cut > 0 {
			bus = bus[:cut]
		}
		mine = append(mine, nccltests.Device{Rank: d.Rank, PID: os.Getpid(), Host: host, Device: d.Device,
			Name: d.Name, BusID: bus})
	}
	lists, err := team.Gather(g.team, mine)
	for _, l := range lists {
		all = append(all, l...)
	}
	return all, err
}

func (g *gpus) About() About {
	a := About{Devices: g.all, Headers: g.cfg.Headers, Threads: len(g.all) / g.team.NRanks,
		Describe: fmt.Sprintf("driver CUDA %d.%d", g.driver.Version()/1000, g.driver.Version()%1000/10)}
	if g.lib != nil {
		a.Library = g.lib.Version()
		a.Describe += fmt.Sprintf(", NCCL %d from %s", g.lib.Version(), g.lib.Name())
	}
	return a
}

func (g *gpus) Close() error { return g.session.Close() }

func (g *gpus) Measure(ctx context.Context, op *device.Case, o device.Options) (m Measurement, err error) {
	if limit := g.spec.Limit; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end within %v: %w", limit,
			context.DeadlineExceeded))
		defer stop()
	}
	by := g.by
	if g.auto {
		c, err := g.pick(ctx, op, o)
		if err != nil {
			return m, err
		}
		by, m.Picks = c.by, c.picks
	}
	m.Shape = by.String()
	m.Measurement, err = g.run(ctx, op, by, o)
	return m, err
}

// Products reports whether Beside multiplies matrices.
func (g *gpus) Products() bool { return g.session.Products() }

// Beside measures n operations while compute w runs on the same GPUs.
func (g *gpus) Beside(ctx context.Context, op *device.Case, w device.Work, n int) (device.Beside, error) {
	return g.session.Beside(ctx, op, g.by, w, n)
}

// run measures an operation by one method; Planned needs the plan.
func (g *gpus) run(ctx context.Context, op *device.Case, by device.Method,
	o device.Options) (device.Measurement, error) {
	one := *op
	if by == device.Planned {
		var err error
		if one.Plan, err = g.plan(op); err != nil {
			return device.Measurement{}, err
		}
	}
	return g.session.Measure(ctx, &one, by, o)
}

// ncclTime returns NCCL's time of an operation that ran by another method; 0 if NCCL is not available or was
// measured itself.
func (g *gpus) ncclTime(ctx context.Context, op *device.Case, o device.Options) (units.Time, error) {
	if g.lib == nil || g.by == device.NCCL && !g.auto {
		return 0, nil
	}
	o.Check = 0
	m, err := g.session.Measure(ctx, op, device.NCCL, o)
	return m.Time, err
}

// memory returns the memory report of -M 1.
func (g *gpus) memory() ([]nccltests.MemoryUse, error) {
	m, err := g.session.Memory()
	return []nccltests.MemoryUse{{Name: "Initialization", Bytes: int64(m.Init)},
		{Name: "User-Allocated", Bytes: int64(m.Buffers)},
		{Name: "Collective", Bytes: int64(m.Work)}}, err
}

// Force implements Forcer: NCCL reads both variables when a communicator is created (graph/tuning.cc:419 and
// 424).
func (g *gpus) Force(ctx context.Context, v Rival) (Backend, error) {
	for _, kv := range [][2]string{{"NCCL_ALGO", v.Algo.String()}, {"NCCL_PROTO", v.Proto.String()}} {
		before, set := g.cfg.Getenv(kv[0])
		if err := nccl.Setenv(kv[0], kv[1]); err != nil {
			return nil, err
		}
		defer func() {
			if set {
				_ = nccl.Setenv(kv[0], before)
			} else {
				_ = nccl.Unsetenv(kv[0])
			}
		}()
	}
	forced := *g
	forced.by, forced.auto = device.NCCL, false
	var err error
	forced.session, err = device.Open(ctx, g.open)
	return &forced, err
}
