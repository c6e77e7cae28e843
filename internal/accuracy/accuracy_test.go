package accuracy

import (
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/calibrate"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
)

// point is a measured time beside the simulated one.
type point struct {
	calibrate.Point
	us float64 // simulated, microseconds
}

// off is the relative deviation of the simulated time.
func (p *point) off() float64 { return p.us/p.Us - 1 }

// set is a point's file without ending, by the name of testdata/measured/README.md.
func (p *point) set() string {
	return strings.TrimPrefix(strings.TrimSuffix(path.Base(p.Run.File), ".txt"), "pb_")
}

// procs reports a point of the first of two machines.
func (p *point) procs() bool { return strings.HasPrefix(p.Run.File, "procs/") }

// shm reports a point whose GPUs reach each other through host memory alone.
func (p *point) shm() bool { return slices.Contains(p.Run.Env, "NCCL_P2P_DISABLE=1") }

func (p *point) large() bool { return p.Bytes >= 1<<20 }

// measured plans every point of some directories of testdata/measured/h200x4.
func measured(t testing.TB, dirs ...string) []calibrate.Point {
	meant := func(file string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
	}
	lab := calibrate.Lab{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "h200x4-4.xml"}}, Multicast: "off"},
		Files: os.DirFS(golden.Root(t, "testdata", "topos"))}
	runs, left, err := calibrate.Read(os.DirFS(golden.Root(t, "testdata", "measured", "h200x4")))
	if err != nil {
		t.Fatal(err)
	}
	runs = slices.DeleteFunc(runs, func(r *calibrate.Run) bool { return !meant(r.File) })
	points, without, err := lab.Prepare(runs)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range append(left, without...) {
		if meant(l) && !strings.Contains(l, "no table in it") && !strings.Contains(l, "by its ending") {
			t.Fatalf("left out: %s", l)
		}
	}
	return points
}

// simulated adds simulated times, by the class that SET=name=value,… changes.
func simulated(t testing.TB, points []calibrate.Point) []point {
	class := overridden(t)
	us, err := calibrate.Predict(context.Background(), points, &class)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]point, len(points))
	for i := range out {
		out[i] = point{points[i], us[i]}
	}
	return out
}

func overridden(t testing.TB) gpu.Class {
	class := gpu.NVSwitch90()
	for set := range strings.SplitSeq(os.Getenv("SET"), ",") {
		name, v, ok := strings.Cut(set, "=")
		if !ok {
			continue
		}
		i := slices.IndexFunc(gpu.Quantities(), func(q gpu.Quantity) bool { return q.Name == name })
		if i < 0 {
			t.Fatalf("no parameter %q", name)
		}
		x, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatal(err)
		}
		*gpu.Quantities()[i].At(&class) = x
	}
	return class
}

// chosen picks points: SHOW=set,… by prefix or all, ONLY=operation,…,
// PROTOCOL=LL,… or P2P, sizes from LEAST to MOST bytes, every STEP-th place.
func chosen(points []calibrate.Point) []calibrate.Point {
	number := func(name string, unset int64) int64 {
		if v, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
			return v
		}
		return unset
	}
	least, most, step := number("LEAST", 0), number("MOST", math.MaxInt64), int(number("STEP", 1))
	among := func(name, value string) bool {
		v := os.Getenv(name)
		return v == "" || slices.Contains(strings.Split(v, ","), value)
	}
	return slices.DeleteFunc(points, func(c calibrate.Point) bool {
		p := point{Point: c}
		proto := p.Request().Proto.String()
		if p.Op.Func.IsP2P() {
			proto = "P2P"
		}
		shown := slices.ContainsFunc(strings.Split(os.Getenv("SHOW"), ","), func(s string) bool { return s == "all" || strings.HasPrefix(p.set(), s) })
		return !shown || p.Bytes < least || p.Bytes > most || p.Place%step > 1 || !among("ONLY", p.Op.Func.TestName()) || !among("PROTOCOL", proto)
	})
}

// TestShowErrors lists points of even place, which fits see (PLACES=odd: the
// others): what chosen says.
func TestShowErrors(t *testing.T) {
	if os.Getenv("SHOW") == "" {
		t.Skip("a look at the data, by SHOW=set,…")
	}
	odd := 0
	if os.Getenv("PLACES") == "odd" {
		odd = 1
	}
	for _, p := range simulated(t, slices.DeleteFunc(chosen(measured(t, "procs", "more")), func(p calibrate.Point) bool { return p.Place%2 != odd })) {
		req := p.Request()
		fmt.Printf("%-18s %-14v %12d %v/%-6v ch %2d meas %10.2f sim %10.2f %+6.1f%%\n", p.set(), p.Op.Func, p.Bytes, req.Algo, req.Proto, req.Channels, p.Us, p.us, 100*p.off())
	}
}

// TestFit fits the parameters FIT=name,… to the points of even place that
// chosen picks, and prints them with their uncertainty.
func TestFit(t *testing.T) {
	names := os.Getenv("FIT")
	if names == "" {
		t.Skip("a fit, by FIT=parameter,… SHOW=set,…")
	}
	points := chosen(measured(t, "procs", "more"))
	r, err := calibrate.Fit(context.Background(), points, overridden(t), calibrate.Options{Quantities: strings.Split(names, ","),
		Round: func(n int, cost float64) { fmt.Printf("round %d: %.1f\n", n, cost) }})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%d points, cost %.1f to %.1f\nSET=", len(points), r.Cost[0], r.Cost[1])
	for i, e := range r.Estimates {
		if i > 0 {
			fmt.Print(",")
		}
		fmt.Printf("%s=%.4g", e.Name, e.Value)
	}
	fmt.Println()
	for _, e := range r.Estimates {
		fmt.Printf("%-20s %10.4g → %10.4g ±%.0f %%\n", e.Name, e.Before, e.Value, 100*e.Uncertainty)
	}
}

// TestDefaultAllReduce is the first line drawn: NCCL's own choices on four
// H200, all sizes, within 10 % in the mean.
func TestDefaultAllReduce(t *testing.T) {
	var s sum
	for _, p := range simulated(t, slices.DeleteFunc(measured(t, "procs"), func(p calibrate.Point) bool {
		return p.Run.File != "procs/pb_default_4.txt" || p.Op.Func != coll.AllReduce
	})) {
		s.add(p.off())
	}
	if s.n != 28 || s.mean() > 0.10 {
		t.Fatalf("default_4 all_reduce: %d points, mean error %.1f %%, want 28 and at most 10 %%", s.n, 100*s.mean())
	}
	t.Logf("mean error %.1f %%, max %.1f %%", 100*s.mean(), 100*s.max)
}
