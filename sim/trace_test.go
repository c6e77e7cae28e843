package sim_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/validate"
)

// counter is a Sink that counts what matters.
type counter struct {
	processes map[int64]bool
	arrows    int
	tracks    []trace.Track
	slices    map[string]int // by category and name; of work requests, opcode
	loose     []string       // slices whose terms are not their length
}

func (c *counter) Track(t trace.Track) trace.TrackID {
	if c.processes == nil {
		c.processes = map[int64]bool{}
	}
	if t.Process >= nccl.RankPID && t.Process < nccl.NICPID {
		c.processes[t.Process] = true
	}
	c.tracks = append(c.tracks, t)
	return trace.TrackID(len(c.tracks) - 1)
}

func (c *counter) Emit(e *trace.Event) {
	switch {
	case e.Phase == trace.FlowStart:
		c.arrows++
		return
	case e.Phase != trace.Slice:
		return
	case c.slices == nil:
		c.slices = map[string]int{}
	}
	name := e.Cat + " " + e.Name
	for _, a := range e.Args {
		if a.Key == "opcode" {
			name = a.Str
		}
	}
	c.slices[name]++
	terms, ok := nccl.ParseTerms(e.Args)
	off := terms.Sum() - e.Dur
	switch {
	case e.Cat == "COLL" || e.Cat == "P2P" || e.Dur <= 2*trace.Tick:
	case (ok || e.Cat == "GPU" || e.Cat == "NET") && max(off, -off) > 2*trace.Tick:
		c.loose = append(c.loose, fmt.Sprintf("%s of %v consists of %v: %v", name, e.Dur, terms.Sum(),
			e.Args))
	}
}

func (c *counter) Close() error { return nil }

// A trace of every kind of operation is whole: valid, one process a rank, an
// arrow for every send of the plan; and it changes no time.
func TestTracesAreWhole(t *testing.T) {
	for _, r := range golden.Own(t) {
		if r.Name != "dgx-h100.n2" && r.Name != "dgx-a100.n2" && r.Name != "dgx-h100+nvls.n2" &&
			r.Name != "h200x4-4.n1" {
			continue
		}
		c, systems := machine(t, &r, comm.Params{})
		for f := range coll.NumFuncs {
			for _, bytes := range []int64{512, 1 << 20} {
				op := comm.Op{Func: f, Count: bytes / 4, Type: coll.Float32}
				if f.PerRank() {
					op.Count /= int64(c.NRanks)
				}
				traceOne(t, r.Name, c, sim.Config{Systems: systems,
					Trace: nccl.Options{Detail: nccl.DetailStep}}, op)
			}
		}
	}
}

func traceOne(t *testing.T, name string, c *comm.Comm, cfg sim.Config, op comm.Op) {
	t.Helper()
	silent, p := simulate(t, c, cfg, op, trace.Discard)
	var sink counter
	told, _ := simulate(t, c, cfg, op, &sink)
	silent.Account.Reduction, told.Account.Reduction = exec.Reduction{}, exec.Reduction{} // why all of it ran
	if !reflect.DeepEqual(silent, told) {
		t.Errorf("%s %v: %v without a trace, %v with one; %d events and %d", name, op.Func, silent.Elapsed,
			told.Elapsed, silent.Events, told.Events)
	}
	sends := 0
	for o := range p.Ops() {
		if o.Do&plan.HoldSend == 0 {
			sends += len(o.To)
		}
	}
	if sink.arrows != sends || len(sink.processes) != c.NRanks {
		t.Errorf("%s %v %v/%v: %d arrows for %d sends, %d processes for %d ranks", name, op.Func, p.Req.Algo,
			p.Req.Proto, sink.arrows, sends, len(sink.processes), c.NRanks)
	}
	if len(sink.loose) > 0 {
		t.Errorf("%s %v %v/%v: %d slices are not the sum of their terms, the first a %s", name, op.Func,
			p.Req.Algo, p.Req.Proto, len(sink.loose), sink.loose[0])
	}
	n := sink.slices
	flushed := 0 // Ampere reads back what it receives
	if cfg.Systems[0].Nodes[cfg.Systems[0].Of(topo.GPU)[0]].GPU.SM < 90 {
		flushed = n["NET RecvFlushWait"]
	}
	if sent := n["NET SendWait"]; n[nccl.OpWriteImm] != sent || n["NET RecvWait"] != sent || sent > 0 &&
		(n[nccl.OpCTS] == 0 && op.Count > 128 || n["PROXY ProgressSend"] == 0 ||
			n["PROXY ProgressSend"] != n["PROXY ProgressRecv"]) || n[nccl.OpRead] != flushed {
		t.Errorf("%s %v %v/%v: the NICs' requests are not the proxies' steps: %v", name, op.Func, p.Req.Algo,
			p.Req.Proto, n)
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
