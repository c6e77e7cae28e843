package sim_test

import (
	"bytes"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/trace/validate"
)

// counter is a Sink that counts what matters.
type counter struct {
	processes map[int64]bool
	arrows    int
	tracks    []trace.Track
}

func (c *counter) Track(t trace.Track) trace.TrackID {
	if c.processes == nil {
		c.processes = map[int64]bool{}
	}
	if t.Process >= nccltrace.RankPID && t.Process < nccltrace.NICPID {
		c.processes[t.Process] = true
	}
	c.tracks = append(c.tracks, t)
	return trace.TrackID(len(c.tracks) - 1)
}

func (c *counter) Emit(e *trace.Event) {
	if e.Phase == trace.FlowStart {
		c.arrows++
	}
}

func (c *counter) Close() error { return nil }

// A trace of every kind of operation is whole: valid, one process a rank, an
// arrow for every send of the plan; and it changes no time.
func TestTracesAreWhole(t *testing.T) {
	for _, r := range golden.Own(t) {
		if r.Name != "dgx-h100.n2" && r.Name != "dgx-a100.n1" && r.Name != "dgx-h100+nvls.n2" && r.Name != "h200x4-4.n1" {
			continue
		}
		c, systems := machine(t, &r, comm.Params{})
		for f := range coll.NumFuncs {
			for _, bytes := range []int64{512, 1 << 20} {
				op := comm.Op{Func: f, Count: bytes / 4, Type: coll.Float32}
				if f.PerRank() {
					op.Count /= int64(c.NRanks)
				}
				traceOne(t, r.Name, c, sim.Config{Systems: systems, Trace: nccltrace.Options{Detail: nccltrace.DetailStep}}, op)
			}
		}
	}
}

func traceOne(t *testing.T, name string, c *comm.Comm, cfg sim.Config, op comm.Op) {
	t.Helper()
	silent, p := simulate(t, c, cfg, op, trace.Discard)
	var sink counter
	told, _ := simulate(t, c, cfg, op, &sink)
	if silent.Elapsed != told.Elapsed {
		t.Errorf("%s %v: %v without a trace, %v with one", name, op.Func, silent.Elapsed, told.Elapsed)
	}
	sends := 0
	for o := range p.Ops() {
		if o.Do&plan.HoldSend == 0 {
			sends += len(o.To)
		}
	}
	if sink.arrows != sends || len(sink.processes) != c.NRanks {
		t.Errorf("%s %v %v/%v: %d arrows for %d sends, %d processes for %d ranks", name, op.Func, p.Req.Algo, p.Req.Proto, sink.arrows, sends, len(sink.processes), c.NRanks)
	}
	var buf bytes.Buffer
	w := chrome.New(&buf, chrome.Options{})
	simulate(t, c, cfg, op, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := validate.Check(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Errors+rep.Warnings > 0 {
		t.Errorf("%s %v %v/%v: %v", name, op.Func, p.Req.Algo, p.Req.Proto, rep.Problems)
	}
}
