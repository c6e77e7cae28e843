package calibrate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Settings are what NCCL's variables come to for the stages of a decision.
type Settings struct {
	Topo topo.Params
	Comm comm.Params
}

// Lab simulates measured operations on the machine they were measured on.
type Lab struct {
	// Spec is a host of the machine; runs of fewer GPUs take its lowest.
	Spec *topo.Spec
	// Settings reads NCCL_NAME=VALUE words; Multicast is not among them.
	Settings  func(env []string) (Settings, error)
	Multicast comm.Multicast

	comms map[string]*machine
}

// machine is a communicator under some settings.
type machine struct {
	comm    *comm.Comm
	systems []*topo.System
}

// Point is a sample with its plan.
type Point struct {
	*Sample
	// ModelUs is the time that NCCL's own cost model gives, microseconds; 0
	// where it has none.
	ModelUs float64
	plan    *plan.Plan
	systems []*topo.System
}

// Prepare plans every sample. Samples that cannot be planned are left out and
// named; an error means that no machine of the kind can be built.
func (l *Lab) Prepare(runs []*Run) (points []Point, left []string, err error) {
	for _, r := range runs {
		m, err := l.machine(r)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.File, err)
		}
		missed := 0
		for i := range r.Samples {
			s := &r.Samples[i]
			p, choice, err := m.comm.Plan(s.Op)
			if err != nil {
				if missed++; missed == 1 {
					left = append(left, fmt.Sprintf("%s: %s of %d bytes: %v", r.File, s.Op.Func.TestName(), s.Bytes, err))
				}
				continue
			}
			points = append(points, Point{s, float64(choice.TimeUs), p, m.systems})
		}
		if missed > 1 {
			left = append(left, fmt.Sprintf("%s: %d more", r.File, missed-1))
		}
	}
	if len(points) == 0 {
		return nil, left, errors.New("none of the measured operations can be planned on this machine")
	}
	return points, left, nil
}

// machine returns the communicator of a run; runs of equal settings share it.
func (l *Lab) machine(r *Run) (*machine, error) {
	key := fmt.Sprint(r.Ranks, r.Nodes, strings.Join(r.Env, " "))
	if m, ok := l.comms[key]; ok {
		return m, nil
	}
	s, err := l.Settings(r.Env)
	if err != nil {
		return nil, err
	}
	if r.Nodes < 1 || r.Ranks%r.Nodes != 0 {
		return nil, fmt.Errorf("%d ranks on %d nodes: nodes of equal size are simulated", r.Ranks, r.Nodes)
	}
	tp := s.Topo
	has, err := topo.CountGPUs(l.Spec, &tp)
	if err != nil {
		return nil, err
	}
	each := r.Ranks / r.Nodes
	if each > has {
		return nil, fmt.Errorf("%d GPUs of a node, but the topology %s has %d", each, l.Spec.Name, has)
	}
	tp.GPUs = units.Some(each)
	cl, err := fabric.NewUniform(l.Spec, r.Nodes, tp)
	if err != nil {
		return nil, err
	}
	p := s.Comm
	p.Access, p.Multicast = tp.Access, l.Multicast
	c, err := comm.New(cl, p)
	if err != nil {
		return nil, err
	}
	m := &machine{comm: c, systems: make([]*topo.System, c.NNodes)}
	for n, ranks := range c.NodeRanks {
		m.systems[n] = cl.Locate(int(ranks[0])).System
	}
	if l.comms == nil {
		l.comms = map[string]*machine{}
	}
	l.comms[key] = m
	return m, nil
}

// Request is what NCCL chose.
func (p *Point) Request() plan.Request { return p.plan.Req }

// Predict simulates a point with a class's quantities, in microseconds.
func (p *Point) Predict(ctx context.Context, class *gpu.Class) (float64, error) {
	x, err := sim.New(sim.Config{Comm: p.plan.Comm, Systems: p.systems, Class: class, Launch: p.Run.Launch, PerThread: p.Run.PerThread})
	if err != nil {
		return 0, err
	}
	r, err := x.Run(ctx, p.plan, trace.Discard)
	if err != nil {
		return 0, fmt.Errorf("%s: %s of %d bytes: %w", p.Run.File, p.Op.Func.TestName(), p.Bytes, err)
	}
	return r.Elapsed.Micros(), nil
}

// Predict simulates all points side by side.
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
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && !failed.Load(); i = int(next.Add(1)) - 1 {
				if errs[i] = f(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
