package measure

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/study/overlap"
	"github.com/simccl/simccl/units"
)

// madeUp is a backend with synthetic times.
type madeUp struct{ products bool }

func (madeUp) About() bench.About {
	return bench.About{Library: 22809, Devices: make([]nccltests.Device, 4)}
}
func (madeUp) Close() error     { return nil }
func (m madeUp) Products() bool { return m.products }
func (madeUp) Measure(context.Context, *bench.Op, bench.Options) (m bench.Measurement, err error) {
	return m, nil
}

func (madeUp) Beside(_ context.Context, op *bench.Op, w bench.Work, n int) (bench.Beside, error) {
	us := units.Microsecond
	return bench.Beside{Alone: 100 * us * units.Time(n), Calls: 150 * us * units.Time(n), Kernel: 50 * us,
		Kernels: 9, Compute: 460 * us, Total: 500 * us}, nil
}

// TestBesideWritesTheTable: sets of several numbers of channels are one table of overlap, with
// what compute takes alone; another measurement begins it anew.
func TestBesideWritesTheTable(t *testing.T) {
	dir := t.TempDir()
	for _, products := range []bool{true, false} {
		for _, s := range besideSets() {
			open := func(context.Context, *team.Team, units.Bytes) (bench.Backend, error) {
				return madeUp{products}, nil
			}
			if err := s.Rank(t.Context(), team.Alone(0), open, nil, dir); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, overlap.FitFile))
		if err != nil {
			t.Fatal(err)
		}
		table, err := overlap.Parse(string(text), "t")
		kinds := 1
		if products {
			kinds = len(works)
		}
		if err != nil || table.World != 4 || len(table.Compute) != kinds || table.Compute["add128M"] != 50 ||
			len(table.Rows) != 12*kinds {
			t.Fatalf("%v: %d rows, %+v\n%s", err, len(table.Rows), table, text)
		}
		last := table.Rows[len(table.Rows)-1]
		if last.Section != "gemm" || last.Labels[2] != "ch16" || last.Measured["x"] != 1.5 ||
			last.Measured["comm0_ms"] != 1.2 {
			t.Errorf("last row %+v", last)
		}
	}
}
