package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	gpubench "github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/bootstrap"
	"github.com/simccl/simccl/real/cuda"
	"github.com/simccl/simccl/real/nccl"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/units"
)

// hardwareError gives a failure of hardware or its library its exit status.
func hardwareError(err error) error {
	var c *cuda.Error
	var n *nccl.Error
	switch {
	case errors.As(err, &c):
		return &statusError{code: exitCUDA, err: err}
	case errors.As(err, &n):
		return &statusError{code: exitNCCL, err: err}
	}
	return deadline(err)
}

// beforeHere counts the processes of lower rank on this host: they have the
// GPUs before this one's (nccl-tests counts so too, common.cu).
func (r *benchRun) beforeHere() (int, error) {
	host, err := os.Hostname()
	if err != nil || r.team.boot == nil {
		return 0, err
	}
	all, err := gather(r.team, host)
	n := 0
	for _, h := range all[:min(r.team.rank, len(all))] {
		if h == host {
			n++
		}
	}
	return n, err
}

// gpus counts the ranks of all processes.
func (r *benchRun) gpus() int {
	if r.back != nil {
		return r.back.ranks()
	}
	return r.localGPUs() * r.team.nranks
}

// localGPUs is -g times -t; without -g, one beside other processes, else all.
func (r *benchRun) localGPUs() int {
	threads := max(r.flags.run.test.threads, 1)
	if r.flags.run.machine.gpus > 0 {
		return r.flags.run.machine.gpus * threads
	}
	if r.team.nranks > 1 {
		return threads
	}
	if d, err := cuda.Open(); err == nil && threads == 1 {
		return d.Count()
	}
	return threads
}

// gpuBackend runs NCCL or the free algorithms on GPUs.
type gpuBackend struct {
	session *gpubench.Session
	cfg     gpubench.Config
	lib     *nccl.Lib
	driver  *cuda.Driver
	all     []nccltests.Device
	by      gpubench.Method
	auto    bool
	plans   planner
	picked  map[gpubench.Op]choice
	last    gpubench.Method // picked before
	events  *nccl.Profiler  // with --trace
}

func openGPUs(ctx context.Context, r *benchRun, buffer units.Bytes) (backend, error) {
	g := &gpuBackend{by: gpubench.NCCL, picked: map[gpubench.Op]choice{}, last: gpubench.NCCL}
	var err error
	if g.driver, err = cuda.Open(); err != nil {
		return nil, err
	}
	own := r.flags.backend == "cuda"
	if own {
		if g.by, g.auto, err = parseMethod(r.flags.gpu.algo); err != nil {
			return nil, err
		}
		if _, err := r.profiler(own); err != nil {
			return nil, err
		}
	}
	if !own || r.flags.gpu.compare {
		if err := passEnv(r.ncclWords()); err != nil {
			return nil, err
		}
		if !own {
			if g.events, err = r.profiler(own); err != nil {
				return nil, err
			}
		}
		path := r.flags.gpu.libnccl
		if v, ok := r.app.getenv("SIMCCL_LIBNCCL"); ok && path == "" {
			path = v
		}
		if g.lib, err = nccl.Open(path); err != nil {
			return nil, err
		}
	}
	local := r.localGPUs()
	before, err := r.beforeHere()
	if err != nil {
		return nil, err
	}
	first := before * local
	if first+local > g.driver.Count() {
		return nil, usage("-g %d: this machine has %d GPUs, and %d processes before this one use %d", local, g.driver.Count(), before, first)
	}
	cfg := gpubench.Config{Driver: g.driver, NCCL: g.lib, Free: own && g.by != gpubench.Planned, Plans: own, First: r.team.rank * local, Ranks: local * r.team.nranks,
		Boot: r.team.boot, Buffer: buffer, Register: gpubench.Registration(r.flags.run.test.localRegister), Unalign: r.flags.run.test.unalign}
	for i := range local {
		cfg.GPUs = append(cfg.GPUs, first+i)
	}
	g.cfg = cfg
	if g.session, err = gpubench.Open(ctx, cfg); err != nil {
		return nil, err
	}
	g.plans.run = r
	g.all, err = g.gather(r.team.boot)
	return g, err
}

// ncclWords are --env's variables, and the one that -x stands for.
func (r *benchRun) ncclWords() []string {
	words := slices.Clone(r.app.env)
	if p := r.flags.run.test.ctaPolicy; p != noPolicy {
		words = append(words, fmt.Sprintf("NCCL_CTA_POLICY=%d", p))
	}
	return words
}

// passEnv sets --env's NCCL variables for the library, which reads C's
// environment and not ours.
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

// parseMethod reads --algo.
func parseMethod(s string) (by gpubench.Method, auto bool, err error) {
	if s == "auto" {
		return 0, true, nil
	}
	for _, m := range ownMethods {
		if s == m.String() {
			return m, false, nil
		}
	}
	return 0, false, usage("--algo %s: write auto, plan, one-shot, two-words, two-shot, push, direct or copies", s)
}

// ownMethods are what --algo may name.
var ownMethods = []gpubench.Method{gpubench.Planned, gpubench.Free(cuda.OneShot), gpubench.Free(cuda.TwoWords), gpubench.Free(cuda.TwoShot),
	gpubench.Free(cuda.Push), gpubench.Free(cuda.Direct), gpubench.Free(cuda.Copies)}

// gather tells every process all devices.
func (g *gpuBackend) gather(boot *bootstrap.Comm) ([]nccltests.Device, error) {
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
		mine = append(mine, nccltests.Device{Rank: d.Rank, PID: os.Getpid(), Host: host, Device: d.Device, Name: d.Name, BusID: bus})
	}
	if boot == nil {
		return mine, nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	lists, err := boot.AllGather(text)
	if err != nil {
		return nil, err
	}
	for _, l := range lists {
		var some []nccltests.Device
		if err := json.Unmarshal(l, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (g *gpuBackend) ranks() int                  { return len(g.all) }
func (g *gpuBackend) devices() []nccltests.Device { return g.all }
func (g *gpuBackend) close() error                { return g.session.Close() }

func (g *gpuBackend) describe() string {
	s := fmt.Sprintf("driver CUDA %d.%d", g.driver.Version()/1000, g.driver.Version()%1000/10)
	if g.lib != nil {
		s += fmt.Sprintf(", NCCL %d from %s", g.lib.Version(), g.lib.Name())
	}
	return s
}

func (g *gpuBackend) measure(ctx context.Context, op *gpubench.Op, o gpubench.Options) (gpubench.Measurement, string, error) {
	by := g.by
	if g.auto {
		c, err := g.pick(ctx, op, o)
		if err != nil {
			return gpubench.Measurement{}, "", err
		}
		by = c.by
	}
	m, err := g.run(ctx, op, by, o)
	return m, by.String(), err
}

// run measures by one method; the plan's schedule needs the plan.
func (g *gpuBackend) run(ctx context.Context, op *gpubench.Op, by gpubench.Method, o gpubench.Options) (gpubench.Measurement, error) {
	one := *op
	if by == gpubench.Planned {
		var err error
		if one.Plan, err = g.plans.plan(op); err != nil {
			return gpubench.Measurement{}, err
		}
	}
	return g.session.Measure(ctx, &one, by, o)
}

// libraryVersion is NCCL's, for the table's head.
func (r *benchRun) libraryVersion() int {
	if g, ok := r.back.(*gpuBackend); ok && g.lib != nil {
		return g.lib.Version()
	}
	return 0
}

// yardstick is NCCL's time of an operation that another backend ran; 0 where
// NCCL is not there to ask.
func (g *gpuBackend) yardstick(ctx context.Context, op *gpubench.Op, o gpubench.Options) (units.Time, error) {
	if g.lib == nil || g.by == gpubench.NCCL && !g.auto {
		return 0, nil
	}
	o.Check = 0
	m, err := g.session.Measure(ctx, op, gpubench.NCCL, o)
	return m.Time, err
}
