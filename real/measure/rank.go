package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
)

// Open opens the backend of one rank; buffer is the buffer size of the largest operation.
type Open func(ctx context.Context, t *team.Team, buffer units.Bytes) (bench.Backend, error)

// skewBytes is the additional room for a set's sizes that are not powers of two.
const skewBytes = 4096

// passes is the number of passes through a set's sizes; the median is used.
const passes = 3

// Rank measures the operations of a set as one of its processes; rank 0 writes a file for each operation to a
// directory. env is NCCL's environment, recorded in the files.
func (s *Set) Rank(ctx context.Context, at team.Place, open Open, env []string, dir string) error {
	if at.Rank < 0 {
		at.NRanks = 1
	}
	t, err := team.Assemble(ctx, at, max(at.NRanks, 1))
	if err != nil {
		return err
	}
	defer t.Leave()
	back, err := open(t.Ctx, t, s.Max+skewBytes)
	if err != nil {
		return err
	}
	ops := s.Ops
	if s.Beside {
		err, ops = s.beside(t, back, dir), nil
	}
	for _, f := range ops {
		if err = s.measure(t, back, f, env, dir); err != nil {
			break
		}
	}
	if cerr := back.Close(); err == nil {
		err = cerr
	}
	return t.Give(err)
}

// measure measures the sizes of an operation and writes their times.
func (s *Set) measure(t *team.Team, back bench.Backend, f coll.Func, env []string, dir string) error {
	began := time.Now()
	about := back.About()
	all := s.sizes(f, len(about.Devices))
	for pass := range passes {
		for i := range all {
			x := &all[i]
			m, err := back.Measure(t.Ctx, x.op, s.options(x.shown, pass == 0))
			if err == nil && m.Wrong > 0 {
				err = team.Wrong("%s of %d bytes: %s", f.TestName(), x.shown, m.First)
			}
			if err != nil {
				return err
			}
			x.times = append(x.times, m.Time)
		}
	}
	if t.Rank != 0 {
		return nil
	}
	doc, err := s.report(&about, all, began)
	if err != nil {
		return err
	}
	doc.Env = env
	var text bytes.Buffer
	if err := nccltests.WriteJSON(&text, doc); err != nil {
		return err
	}
	text.WriteByte('\n')
	return newfile.Write(filepath.Join(dir, s.Name+"."+f.TestName()+".json"), text.Bytes())
}

// jsonTime is nccl-tests' format of times.
const jsonTime = "2006-01-02 15:04:05"

// report returns the times of an operation as nccl-tests' JSON.
func (s *Set) report(about *bench.About, all []timing, began time.Time) (*nccltests.Report, error) {
	o := s.options(0, false)
	doc := &nccltests.Report{Start: began.UTC().Format(jsonTime), End: time.Now().UTC().Format(jsonTime),
		Devices: about.Devices, Args: []string{"simccl", "bench", all[0].op.Func.TestName()},
		Summary: nccltests.Summary{MinBW: -1},
		Config: nccltests.Config{NCCLHeaders: about.Headers, NCCLLibrary: about.Library, Threads: 1, GPUs: 1,
			MinBytes: int64(all[0].shown),
			MaxBytes: int64(all[len(all)-1].shown), StepFactor: s.Factor, Warmup: o.Warmup, Iters: o.Iters,
			AggIters: 1, Check: 1, Graph: o.Replays}}
	for _, t := range all {
		row := nccltests.Row{Size: int64(t.shown), Count: t.op.Sizes.Count, Type: t.op.Type.TestName(),
			RedOp: "none", Root: -1}
		if t.op.Func.PrintsRedOp() {
			row.RedOp = t.op.Red.TestName()
		}
		if t.op.Func.Rooted() {
			row.Root = t.op.Root
		}
		each := make([]float64, len(t.times))
		for i, d := range t.times {
			each[i] = d.Micros()
		}
		own, err := json.Marshal(map[string]any{"passes_us": each})
		if err != nil {
			return nil, err
		}
		slices.Sort(t.times)
		middle := t.times[len(t.times)/2]
		took := nccltests.Measure{TimeUs: middle.Micros(), Checked: true}
		took.AlgBW, took.BusBW = coll.Bandwidth(t.op.Func, t.op.Sizes.Count, t.op.Type, len(about.Devices),
			middle)
		if doc.Summary.AvgBusBW += took.BusBW / float64(len(all)); t.op.InPlace {
			row.In = took
		} else {
			row.Out = took
		}
		doc.Rows, doc.Own = append(doc.Rows, row), append(doc.Own, string(own))
	}
	return doc, nil
}
