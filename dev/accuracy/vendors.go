package accuracy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
)

// Vendor is a kind of GPU whose sweeps others published: for flags, for people, as their tables name it,
// and the machine that is simulated for theirs.
type Vendor struct{ Key, Short, GPU, Topo string }

// Vendors are the sweeps of single nodes that others published.
var Vendors = []Vendor{
	{"a100", "A100 SXM", "A100-SXM4-80GB", "dgx-a100"},
	{"h100", "H100 SXM", "H100 80GB HBM3 SXM", "dgx-h100"},
	{"h200", "H200 SXM", "H200 SXM", "dgx-h200"},
	{"b200", "B200", "B200", "dgx-b200"},
	{"b300", "B300", "B300 SXM6", "hgx-b300-8"},
	{"gb200", "GB200", "GB200", "gb200-nvl72"},
	{"gb300", "GB300", "GB300", "gb300-nvl72"},
	{"l40s", "L40S", "L40S", "pcie-l40s-8"},
	{"rtxpro", "RTX PRO 6000", "RTX PRO 6000 Blackwell Server Edition", "pcie-rtx-pro-6000-8"},
}

// Fitted reports whether fits may see a published table: half of them, by the lowest bit of the first
// byte of the SHA-256 of its source, a newline and its name. The others judge.
func Fitted(source, name string) bool {
	return sha256.Sum256([]byte(source + "\n" + name))[0]&1 == 0
}

// VendorPoints plans the sweeps of one machine of Vendors in a file of published tables, those that
// fits may see or the others.
func VendorPoints(tables fs.FS, key string, fitted bool) ([]calibrate.Point, error) {
	runs, _, err := calibrate.ReadFile(tables, "tables.json")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(Vendors, func(v Vendor) bool { return v.Key == key })
	if i < 0 {
		return nil, fmt.Errorf("no sweeps of %q", key)
	}
	v := Vendors[i]
	runs = slices.DeleteFunc(runs, func(r *calibrate.Run) bool {
		return r.GPU != v.GPU || r.Nodes != 1 || Fitted(r.Source, r.Name) != fitted
	})
	lab, _, err := calibrate.NewLab(scenario.Spec{Machine: scenario.Machine{
		Nodes: []scenario.Nodes{{Topo: v.Topo}}}}, scenario.Options{})
	if err != nil {
		return nil, err
	}
	points, left, err := lab.Prepare(runs)
	if len(left) > 0 {
		return nil, fmt.Errorf("left out: %s", strings.Join(left, "; "))
	}
	return points, err
}

// regimes are the bounds of sizes that errors are summed up by.
var regimes = [...]struct{ from, to int64 }{{0, 64 << 10}, {64 << 10, 1 << 20}, {1 << 20, 16 << 20},
	{16 << 20, 1 << 62}}

// sized are the errors of some points by regime, with the means of their signs.
type sized struct {
	by         [len(regimes)]sum
	bias       [len(regimes)]float64
	large, all sum
}

// sums sums up points.
func sums(points []Point) *sized {
	s := new(sized)
	for i, g := range regimes {
		for k := range points {
			if p := &points[k]; p.Bytes >= g.from && p.Bytes < g.to {
				s.by[i].add(p.Off())
				s.bias[i] += p.Off()
			}
		}
		s.bias[i] /= float64(max(1, s.by[i].n))
		s.all.merge(&s.by[i])
		if g.from >= 1<<20 {
			s.large.merge(&s.by[i])
		}
	}
	return s
}

// rowsOf sums points up by operation, and all of them.
func rowsOf(points []Point, row func(op string, s *sized)) {
	for _, f := range coll.Funcs() {
		of := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Op.Func != f })
		if len(of) > 0 {
			row(f.TestName(), sums(of))
		}
	}
	if len(points) > 0 {
		row("all", sums(points))
	}
}

// VendorTable writes the errors of points by operation and regime, the mean of |simulated/measured - 1|
// in percent and of its sign.
func VendorTable(w io.Writer, name string, points []Point) {
	rowsOf(points, func(op string, s *sized) {
		fmt.Fprintf(w, "%-8s %-14s", name, op)
		for i := range s.by {
			fmt.Fprintf(w, "  %5.1f %+6.1f", 100*s.by[i].mean(), 100*s.bias[i])
		}
		fmt.Fprintf(w, " | %5.1f %5.1f max %5.1f\n", 100*s.large.mean(), 100*s.all.mean(), 100*s.all.max)
	})
}

// VendorClass is the class that a vendor's machine gets, changed by quantities, "name=value,…".
func VendorClass(key, quantities string) (gpu.Class, error) {
	for _, v := range Vendors {
		if v.Key == key {
			_, class, err := calibrate.NewLab(scenario.Spec{Machine: scenario.Machine{
				Nodes: []scenario.Nodes{{Topo: v.Topo}}}}, scenario.Options{})
			if err != nil {
				return class, err
			}
			return class, change(&class, quantities)
		}
	}
	return gpu.Class{}, fmt.Errorf("no sweeps of %q", key)
}

// VendorRegimes are the errors at every second size of each sweep, which a fit to the sweeps does not see.
func VendorRegimes(points []Point) []gpu.Regime {
	all, sizes := make([]calibrate.Residual, len(points)), map[*calibrate.Run]int{}
	for i := range points {
		p := &points[i]
		all[i] = calibrate.Residual{Sample: p.Sample, After: p.Sim, Held: sizes[p.Run]%2 == 1}
		sizes[p.Run]++
	}
	return calibrate.Regimes(all)
}

// SimulateVendor simulates the sweeps of a machine with its class, changed by quantities.
func SimulateVendor(ctx context.Context, tables fs.FS, key, quantities string, fitted bool) ([]Point, error) {
	points, err := VendorPoints(tables, key, fitted)
	if err != nil || len(points) == 0 {
		return nil, err
	}
	class, err := VendorClass(key, quantities)
	if err != nil {
		return nil, err
	}
	return Simulate(ctx, points, &class)
}
