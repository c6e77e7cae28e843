package measure

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
)

// Besider is a backend that measures collectives while compute runs.
type Besider interface {
	// Products reports whether matrix products are available.
	Products() bool
	Beside(ctx context.Context, op *bench.Op, w bench.Work, n int) (bench.Beside, error)
}

// works are the compute kernels, by their names in the table of overlap. With longer kernels the measurement
// would show when a collective begins rather than how fast it is.
var works = []struct {
	name string
	work bench.Work
}{
	{"add128M", bench.Work{Bytes: 128 << 20}},
	{"gemm4096", bench.Work{Product: 4096}},
}

// besideSizes are the sizes of collectives measured while compute runs, each with the number that follow one
// another: some milliseconds in total.
var besideSizes = []struct {
	bytes units.Bytes
	n     int
}{{16 << 20, 12}, {64 << 20, 6}, {256 << 20, 3}}

// besideSets returns sets with all channels and with few: with one or four channels the kernels limit
// collectives, with all channels the links.
func besideSets() []Set {
	all := []Set{{Name: "beside", Beside: true, Ops: []coll.Func{coll.AllReduce, coll.AllGather,
		coll.ReduceScatter}, Max: 256 << 20, Factor: 4}}
	for _, n := range []string{"1", "4", "16"} {
		all = append(all, Set{Name: "beside-ch" + n, Beside: true, Ops: reduceOps, Max: 16 << 20, Factor: 4,
			Env: []string{"NCCL_MIN_CTAS=" + n, "NCCL_MAX_CTAS=" + n}})
	}
	return all
}

// OverlapFile is the name of the table of collectives during compute, in a directory of measured times.
const OverlapFile = "overlap.txt"

// beside measures the set's operations while compute runs; rank 0 appends its rows to the table of the
// directory. The set of all channels starts a new table.
func (s *Set) beside(t *team.Team, back bench.Backend, dir string) error {
	b, ok := back.(Besider)
	if !ok {
		return team.Refuse("--sets %s: collectives beside compute are measured on GPUs", s.Name)
	}
	about := back.About()
	group := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(s.Name, "beside"), "-"), "def")
	var rows, alone strings.Builder
	for _, w := range works {
		if w.work.Product > 0 && !b.Products() {
			continue
		}
		kernel := units.Time(0)
		for _, f := range s.Ops {
			for _, x := range besideSizes {
				sizes := coll.TestSizes(f, x.bytes, coll.BFloat16, len(about.Devices))
				if x.bytes > s.Max || sizes.Count == 0 {
					continue
				}
				op := &device.Case{Func: f, Type: coll.BFloat16, Red: coll.Sum, Sizes: sizes,
					InPlace: f == coll.AllReduce}
				got, err := b.Beside(t.Ctx, op, w.work, x.n)
				if err != nil {
					return err
				}
				kernel = got.Kernel
				rows.WriteString(besideRow(f, x.bytes, group, x.n, w.name, &got))
			}
		}
		fmt.Fprintf(&alone, "%-16s %10.2f\n", w.name, kernel.Micros())
	}
	if t.Rank != 0 {
		return nil
	}
	file := filepath.Join(dir, OverlapFile)
	text, err := os.ReadFile(file)
	if err != nil || group == "def" {
		text = []byte(besideHead(&about) + alone.String() + besideColumns)
	}
	return newfile.Write(file, append(text, rows.String()...))
}

// besideHead and besideColumns begin the table.
func besideHead(about *bench.About) string {
	name := "GPU"
	if len(about.Devices) > 0 {
		name = about.Devices[0].Name
	}
	v := about.Library
	return fmt.Sprintf("# simccl calibrate, CUDA graphs (nccl %d.%d.%d) %s world %d\n\n"+
		"## solo: us a kernel of compute\n%-16s %10s\n",
		v/10000, v/100%100, v%100, name, len(about.Devices), "compute", "us")
}

const besideColumns = "\n## gemm: n collectives beside K kernels of compute; comm0, comp0: alone; x: how " +
	"much longer the collectives take; rate: speed of the compute meanwhile\n" +
	"op                  bytes group   n  compute    K  comm0_ms   comm_ms      x  comp0_ms   comp_ms   " +
	"rate  total_ms   /sum\n"

// besideRow returns a line of the table.
func besideRow(f coll.Func, bytes units.Bytes, group string, n int, compute string, b *bench.Beside) string {
	ms := func(t units.Time) float64 { return t.Micros() / 1e3 }
	comm0, comm, comp0 := ms(b.Alone), ms(b.Calls), ms(b.Kernel)*float64(b.Kernels)
	rate := (comp0 - (ms(b.Compute) - comm)) / comm
	return fmt.Sprintf("%-14s %10d %5s %3d %8s %4d %9.3f %9.3f %6.2f %9.3f %9.3f %6.2f %9.3f %6.2f\n",
		f.TestName(), int64(bytes), group, n, compute, b.Kernels,
		comm0, comm, comm/comm0, comp0, ms(b.Compute), rate, ms(b.Total), ms(b.Total)/(comm0+comp0))
}
