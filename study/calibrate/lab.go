package calibrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/trace"
)

// Lab simulates measured operations on the machine they were measured on.
type Lab struct {
	// Machine is a kind of node of the machine; runs of fewer GPUs take its
	// lowest. Its Nodes has one entry, or none for the built-in machine.
	Machine scenario.Machine
	// Files contains the Machine's topology files.
	Files fs.FS

	sites  map[string]*scenario.Site
	others []string // runs of releases without rules, and the release used instead
}

// NewLab builds the Lab for the machine of a Spec, whose first kind of node was measured, and returns its
// machine class. Errors are those of scenario.Layout.
func NewLab(spec scenario.Spec, opt scenario.Options) (*Lab, gpu.Class, error) {
	site, err := scenario.Layout(&spec, opt)
	if err != nil {
		return nil, gpu.Class{}, err
	}
	m := scenario.Machine{Multicast: spec.Machine.Multicast, NVLinkDomain: spec.Machine.NVLinkDomain}
	if len(spec.Machine.Nodes) > 0 {
		m.Nodes = []scenario.Nodes{{Topo: spec.Machine.Nodes[0].Topo}}
	}
	return &Lab{Machine: m, Files: opt.Files}, *site.Class(), nil
}

// Point is a sample with its plan.
type Point struct {
	*Sample
	// ModelUs is the time that NCCL's own cost model gives, microseconds; 0
	// where it has none.
	ModelUs float64
	plan    *plan.Plan
	site    *scenario.Site
}

// Prepare plans every sample. Samples that cannot be planned are left out and
// named; an error means that no machine of the kind can be built.
func (l *Lab) Prepare(runs []*Run) (points []Point, left []string, err error) {
	for _, r := range runs {
		site, err := l.site(r)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.File, err)
		}
		missed := 0
		for i := range r.Samples {
			s := &r.Samples[i]
			p, choice, err := site.Comm.Plan(s.Op)
			if err != nil {
				if missed++; missed == 1 {
					left = append(left, fmt.Sprintf("%s: %s of %d bytes: %v", r.File, s.Op.Func.TestName(),
						s.Bytes, err))
				}
				continue
			}
			if p.Comm.NRanks == 1 && p.OneRank() == plan.NoLaunch {
				continue // NCCL launches nothing: the time is that of an empty loop
			}
			points = append(points, Point{s, float64(choice.TimeUs), p, site})
		}
		if missed > 1 {
			left = append(left, fmt.Sprintf("%s: %d more", r.File, missed-1))
		}
	}
	left = append(left, l.others...)
	if len(points) == 0 {
		return nil, left, errors.New("none of the measured operations can be planned on this machine")
	}
	return points, left, nil
}

// site returns the machine of a run; runs of equal settings share it.
func (l *Lab) site(r *Run) (*scenario.Site, error) {
	key := fmt.Sprint(r.Ranks, r.Nodes, r.NCCL, strings.Join(r.Env, " "))
	if m, ok := l.sites[key]; ok {
		return m, nil
	}
	if r.Nodes < 1 || r.Ranks%r.Nodes != 0 {
		return nil, fmt.Errorf("%d ranks on %d nodes: only nodes of equal size are simulated", r.Ranks,
			r.Nodes)
	}
	spec := scenario.Spec{Machine: l.Machine, NCCL: scenario.NCCL{Version: r.release()}}
	node := scenario.Nodes{}
	if len(l.Machine.Nodes) > 0 {
		node = l.Machine.Nodes[0]
	}
	node.Count = r.Nodes
	spec.Machine.Nodes, spec.Machine.GPUs = []scenario.Nodes{node}, r.Ranks/r.Nodes
	// This process's environment does not apply to measurements of another process.
	opt := scenario.Options{Files: l.Files, Settings: config.Sources{NoEnv: true, Flags: r.Env}}
	m, err := scenario.Load(&spec, opt)
	if err != nil && spec.NCCL.Version != "" { // of which there may be no rules
		known := spec
		known.NCCL.Version = ""
		if m, err2 := scenario.Load(&known, opt); err2 == nil {
			l.others = append(l.others, fmt.Sprintf("%s: nothing, but rules of NCCL %s answer: %v", r.File,
				m.Config.Rules.Version(), err))
			return l.keep(key, m), nil
		}
	}
	if err != nil {
		return nil, err
	}
	return l.keep(key, m), nil
}

// keep caches the machine for a run's settings.
func (l *Lab) keep(key string, m *scenario.Site) *scenario.Site {
	if l.sites == nil {
		l.sites = map[string]*scenario.Site{}
	}
	l.sites[key] = m
	return m
}

// Request returns the request that NCCL's choice leads to.
func (p *Point) Request() plan.Request { return p.plan.Req }

// Predict simulates a point with a class's quantities, in microseconds.
func (p *Point) Predict(ctx context.Context, class *gpu.Class) (float64, error) {
	cfg, err := p.site.SimConfig(&scenario.Spec{})
	if err != nil {
		return 0, err
	}
	cfg.Class, cfg.Launch, cfg.PerThread, cfg.Seed = class, p.Run.Launch, p.Run.PerThread, 0
	x, err := sim.New(cfg)
	if err != nil {
		return 0, err
	}
	r, err := x.Run(ctx, exec.One(p.plan), trace.Discard)
	if err != nil {
		return 0, fmt.Errorf("%s: %s of %d bytes: %w", p.Run.File, p.Op.Func.TestName(), p.Bytes, err)
	}
	return r.Elapsed.Micros(), nil
}

// Predict simulates all points in parallel and returns their times in microseconds.
func Predict(ctx context.Context, points []Point, class *gpu.Class) ([]float64, error) {
	out := make([]float64, len(points))
	err := sideBySide(len(points), func(i int) (err error) {
		out[i], err = points[i].Predict(ctx, class)
		return err
	})
	return out, err
}

// sideBySide calls f for 0 to n-1 on all processors and returns the first
// error in order of i. What it computes does not depend on how many there are.
func sideBySide(n int, f func(i int) error) error {
	errs := make([]error, n)
	var failed atomic.Bool
	parallel.Each(runtime.GOMAXPROCS(0), n, func(i int) {
		if failed.Load() {
			return
		}
		if errs[i] = f(i); errs[i] != nil {
			failed.Store(true)
		}
	})
	return errors.Join(errs...)
}
