package device

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan/msccl"
	"github.com/simccl/simccl/plan/mscclpp"
	"github.com/simccl/simccl/plan/schedule"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/trace"
)

var allTypes = []coll.DataType{coll.Float64, coll.Float32, coll.Float16, coll.BFloat16, coll.Int8, coll.Uint8,
	coll.Int32, coll.Uint32, coll.Int64, coll.Uint64}

// TestPartsOfEveryTypeOnGPUs checks what has a root, and sendrecv, by every shape,
// type and reduction, element by element: sizes that end amid a word, a line and a
// share, and one that copies and direct kernels take.
func TestPartsOfEveryTypeOnGPUs(t *testing.T) {
	d, _ := hardware(t)
	if d.Count() < 2 {
		t.Skip("one GPU has no peers")
	}
	var gpus []int
	for i := range min(d.Count(), cuda.MaxRanks) {
		gpus = append(gpus, i)
	}
	s, err := Open(context.Background(), Config{Driver: d, Free: true, GPUs: gpus, Ranks: len(gpus),
		Buffer: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]int{}
	for _, f := range []coll.Func{coll.Broadcast, coll.Reduce, coll.Gather, coll.Scatter, coll.SendRecv} {
		reds := coll.RedOps()
		if f != coll.Reduce {
			reds = reds[:1]
		}
		for _, typ := range allTypes {
			for _, red := range reds {
				for i, count := range []int64{1, 1237, 68_003, 1_048_583} {
					op := &Case{Func: f, Type: typ, Red: red, Root: i % len(gpus),
						Sizes: coll.CountSizes(f, count, len(gpus)), InPlace: i == 1 && !noInPlace(f)}
					if f == coll.SendRecv {
						op.Root = 0
					}
					for _, by := range s.FreeMethods(op) {
						m, err := s.Measure(context.Background(), op, by, Options{Iters: 2, Check: 1})
						if err != nil || m.Wrong != 0 || !m.Checked {
							t.Errorf("%v of %d %v, %v, root %d, by %v: %d wrong (%s), checked %t, %v", f,
								count, typ, red, op.Root, by, m.Wrong, m.First, m.Checked, err)
						}
						cases[by.String()]++
					}
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d GPUs, cases by shape: %v", len(gpus), cases)
}

// TestSchedulesOfFourRanksOnGPUs runs the project's schedules of four ranks, where
// there are fewer GPUs several ranks on each, and checks every element.
func TestSchedulesOfFourRanksOnGPUs(t *testing.T) {
	d, gpus := hardware(t)
	for name, read := range map[string]func([]byte, string) (*schedule.Schedule, error){
		"allpairs4.xml": msccl.Read, "hier2x2.xml": msccl.Read, "packets4.json": mscclpp.Read} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "schedules", name))
		if err != nil {
			t.Fatal(err)
		}
		sched, err := read(text, name)
		if err != nil {
			t.Fatal(err)
		}
		sched = sched.Simple() // as GPUs run every schedule
		for _, each := range []int64{1, 999, 1 << 18} {
			r, err := sched.Request(each*sched.Unit(), coll.Float32)
			if err != nil {
				t.Fatal(err)
			}
			p, err := sched.Plan(sched.Alone(), r)
			if err != nil {
				t.Fatal(err)
			}
			e := &Executor{Driver: d, GPUs: gpus}
			res, err := e.Run(context.Background(), exec.One(p), trace.Discard)
			if err != nil || res.Wrong != 0 {
				t.Errorf("%s, %d elements a chunk: %d wrong, %v", name, each, res.Wrong, err)
				continue
			}
			t.Logf("%s, %d bytes, ranks on GPUs %v: every element right, %v", name, int64(p.Layout(0).Output),
				gpus, res.Elapsed)
		}
	}
}
