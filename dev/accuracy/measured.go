package accuracy

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
)

// Point is a measured time beside the simulated one.
type Point struct {
	calibrate.Point
	Sim float64 // simulated, microseconds
}

// Off is the relative deviation of the simulated time.
func (p *Point) Off() float64 { return p.Sim/p.Us - 1 }

// Set is a point's file without ending, by the name of testdata/measured/README.md.
func (p *Point) Set() string {
	return strings.TrimPrefix(strings.TrimSuffix(path.Base(p.Run.File), ".txt"), "pb_")
}

// procs reports a point of the first of two machines.
func (p *Point) procs() bool { return strings.HasPrefix(p.Run.File, "procs/") }

// shm reports a point whose GPUs reach each other through host memory alone.
func (p *Point) shm() bool { return slices.Contains(p.Run.Env, "NCCL_P2P_DISABLE=1") }

func (p *Point) large() bool { return p.Bytes >= 1<<20 }

// Measured plans every point of some directories of testdata/measured/h200x4,
// which is measured; topos holds the machine.
func Measured(topos, measured fs.FS, dirs ...string) ([]calibrate.Point, error) {
	meant := func(file string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
	}
	lab := calibrate.Lab{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "h200x4-4.xml"}},
		Multicast: "off"}, Files: topos}
	runs, left, err := calibrate.Read(measured)
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(r *calibrate.Run) bool { return !meant(r.File) })
	points, without, err := lab.Prepare(runs)
	if err != nil {
		return nil, err
	}
	for _, l := range append(left, without...) {
		if meant(l) && !strings.Contains(l, "no table in it") && !strings.Contains(l, "by its ending") {
			return nil, fmt.Errorf("left out: %s", l)
		}
	}
	return points, nil
}

// Simulate adds the times of a class to points.
func Simulate(ctx context.Context, points []calibrate.Point, class *gpu.Class) ([]Point, error) {
	us, err := calibrate.Predict(ctx, points, class)
	if err != nil {
		return nil, err
	}
	out := make([]Point, len(points))
	for i := range out {
		out[i] = Point{points[i], us[i]}
	}
	return out, nil
}

// ClassWith is the measured class with other quantities: "name=value,…".
func ClassWith(quantities string) (gpu.Class, error) {
	class := gpu.NVSwitch90()
	return class, change(&class, quantities)
}

// change sets quantities of a class: "name=value,…".
func change(class *gpu.Class, quantities string) error {
	for set := range strings.SplitSeq(quantities, ",") {
		name, v, ok := strings.Cut(set, "=")
		if !ok {
			if set != "" {
				return fmt.Errorf("%q: write name=value", set)
			}
			continue
		}
		i := slices.IndexFunc(gpu.Quantities(), func(q gpu.Quantity) bool { return q.Name == name })
		if i < 0 {
			return fmt.Errorf("no quantity %q", name)
		}
		x, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return err
		}
		*gpu.Quantities()[i].At(class) = x
	}
	return nil
}

// sum gathers relative deviations.
type sum struct {
	n        int
	sum, max float64
}

func (s *sum) add(e float64) {
	s.n++
	s.sum += math.Abs(e)
	s.max = math.Max(s.max, math.Abs(e))
}

func (s *sum) merge(o *sum) {
	s.n += o.n
	s.sum += o.sum
	s.max = max(s.max, o.max)
}

func (s *sum) mean() float64 {
	if s.n == 0 {
		return -1
	}
	return s.sum / float64(s.n)
}

func percent(v float64) string {
	switch {
	case v < 0:
		return "–"
	case v == 0:
		return ""
	}
	return fmt.Sprintf("%.1f", 100*v)
}

// Choice picks points.
type Choice struct {
	Sets      []string // beginnings of names of sets; "all"
	Ops       []string // as nccl-tests calls them; empty: all
	Protocols []string // LL, LL128, Simple, P2P; empty: all
	Least     int64    // bytes
	Most      int64    // 0: no bound
	Step      int      // every so many-th place; 0: each
	Places    Places
}

// Places are places of sizes in their files: fits see the even ones, the odd ones
// judge.
type Places uint8

// Places that are meant.
const (
	All Places = iota
	Even
	Odd
)

// Of returns the points that are meant.
func (c *Choice) Of(points []calibrate.Point) []calibrate.Point {
	among := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return slices.DeleteFunc(slices.Clone(points), func(x calibrate.Point) bool {
		p := Point{Point: x}
		proto := p.Request().Proto.String()
		if p.Op.Func.IsP2P() {
			proto = "P2P"
		}
		shown := slices.ContainsFunc(c.Sets, func(s string) bool {
			return s == "all" || strings.HasPrefix(p.Set(), s)
		})
		return !shown || c.Places != All && p.Held(2) != (c.Places == Odd) || p.Bytes < c.Least ||
			c.Most > 0 && p.Bytes > c.Most || p.Place%max(1, c.Step) > 1 ||
			!among(c.Ops, p.Op.Func.TestName()) || !among(c.Protocols, proto)
	})
}
