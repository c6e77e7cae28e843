package scenario

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// seenOfNetwork is what a job's trace shows of a network of packets.
type seenOfNetwork struct {
	queued  map[string]float64 // by counter: what it shows last
	calm    map[string]float64 // the same, at the time calm
	deepest float64
	marked  float64
	pauses  int
	pairs   map[string]bool
}

// value is that of a counter.
func value(e *chrome.Event) float64 {
	if a := &e.Args[0]; a.Kind == trace.IntArg {
		return float64(a.Int)
	}
	return e.Args[0].Num
}

// networkOf reads a trace. Pauses of one port are checked to follow each other.
func networkOf(t *testing.T, data []byte, calm units.Time) *seenOfNetwork {
	t.Helper()
	s := &seenOfNetwork{queued: map[string]float64{}, calm: map[string]float64{}, pairs: map[string]bool{}}
	paused := map[int64]units.Time{}
	_, err := chrome.Read(bytes.NewReader(data), func(e *chrome.Event) error {
		switch {
		case e.PID == nccl.PortsPID && e.Phase == 'C' && strings.HasSuffix(e.Name, " queued B"):
			s.queued[e.Name] = value(e)
			s.deepest = max(s.deepest, value(e))
			if e.TS <= calm {
				s.calm[e.Name] = value(e)
			}
		case e.PID == nccl.PortsPID && e.Phase == 'C':
			s.marked += value(e)
		case e.PID == nccl.PausesPID && e.Phase == 'X':
			s.pauses++
			if e.Name != "paused" || e.Dur <= 0 || e.TS < paused[e.TID] {
				t.Errorf("%s of %v at %v, the one before ended at %v", e.Name, e.Dur, e.TS, paused[e.TID])
			}
			paused[e.TID] = e.TS + e.Dur
		case e.PID == nccl.PairsPID && e.Phase == 'C':
			s.pairs[e.Name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// jobOfAlltoalls has two of them with time to compute between, and two groups at once.
const jobOfAlltoalls = `workload 1
ranks 16
comm world *
comm even 0,2,4,6,8,10,12,14
comm odd 1,3,5,7,9,11,13,15
list a 0,2,4,6,8,10,12,14
  call 1 world alltoall half sum 131072
  call 1 even all_gather half sum 65536
  compute 1 500000000
  call 1 world alltoall half sum 262144
list b 1,3,5,7,9,11,13,15
  call 1 world alltoall half sum 131072
  call 1 odd all_gather half sum 65536
  compute 1 500000000
  call 1 world alltoall half sum 262144
`

// jobRunner returns a function that runs the job over a network that blocks 4:1, and writes
// its trace to a file if it has a name.
func jobRunner(t *testing.T, out memory) func(model, net string, fidelity job.Fidelity,
	file string) *JobResult {
	t.Helper()
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: 1,
		Oversub: 4, Latency: 0.3})
	if err != nil {
		t.Fatal(err)
	}
	with := func(packets string) *fstest.MapFile {
		return &fstest.MapFile{
			Data: []byte(strings.Replace(string(n.Format()), `"switches"`, packets+`, "switches"`, 1))}
	}
	opt := Options{Create: out.create, Program: "test",
		Files: fstest.MapFS{"a.xml": {Data: builtin.DGXH100()},
			"thin.json":  with(`"packets": {"buffer_kb": 700, "cc": "none"}`),
			"dcqcn.json": with(`"packets": {"cc": "dcqcn:paper"}`)}}
	p, err := workload.Parse(jobOfAlltoalls, "job.txt")
	if err != nil {
		t.Fatal(err)
	}
	return func(model, net string, fidelity job.Fidelity, file string) *JobResult {
		t.Helper()
		spec := Spec{Machine: Machine{Nodes: []Nodes{{Topo: "a.xml", Count: 2}}},
			Network: Network{Model: model, Fabric: net}, Outputs: Outputs{Trace: file}}
		site, err := Load(&spec, opt)
		if err != nil {
			t.Fatal(err)
		}
		m, err := site.Session(&spec)
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Run(context.Background(), p, job.Options{Fidelity: fidelity, Observe: file != ""})
		if err == nil && file != "" {
			err = site.TraceJob(&spec, opt, r)
		}
		if err != nil {
			t.Fatalf("%s, %s, %v: %v", model, net, fidelity, err)
		}
		return r
	}
}

// TestTraceOfJobShowsItsNetwork: queues, which come back to nothing while the GPUs compute and
// at the end, pauses, marks and rates, in times that are those without a trace.
func TestTraceOfJobShowsItsNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: jobs packet by packet")
	}
	out := memory{}
	run := jobRunner(t, out)
	for _, x := range []struct {
		model, net    string
		pauses, rates bool
	}{{"packet", "thin.json", true, false}, {"packet", "dcqcn.json", false, true},
		{"hybrid", "dcqcn.json", false, true}} {
		bare, r := run(x.model, x.net, job.Step, ""), run(x.model, x.net, job.Step, "t.json")
		if bare.Network != nil || !reflect.DeepEqual(bare.Spans, r.Spans) || !reflect.DeepEqual(bare.Finish,
			r.Finish) || !reflect.DeepEqual(bare.Links, r.Links) {
			t.Errorf("%s, %s: a trace changes the job", x.model, x.net)
		}
		data := out["t.json"].Bytes()
		if rep, err := validate.Check(bytes.NewReader(data)); err != nil || rep.Errors > 0 ||
			rep.Warnings > 0 {
			t.Errorf("%s, %s: the trace: %+v, %v", x.model, x.net, rep, err)
		}
		s := networkOf(t, data, r.Spans[0][3].Begin)
		for _, at := range []map[string]float64{s.queued, s.calm} {
			for name, v := range at { //lint:sorted each by itself
				if v != 0 {
					t.Errorf("%s, %s: %s is %.0f though nothing is sent", x.model, x.net, name, v)
				}
			}
		}
		if s.deepest < 4096 || len(s.calm) == 0 || (s.pauses > 0) != x.pauses || (s.marked > 0) != x.rates ||
			(len(s.pairs) > 0) != x.rates {
			t.Errorf("%s, %s: at most %.0f bytes in a queue, %d ports before the second alltoall, %d "+
				"pauses, %.0f marks, rates of %d queue pairs", x.model, x.net, s.deepest, len(s.calm),
				s.pauses, s.marked, len(s.pairs))
		}
		for name := range s.pairs { //lint:sorted each by itself
			if !strings.HasPrefix(name, "QP ") || strings.Contains(name, "on world") != strings.Contains(name,
				"AlltoAll") {
				t.Errorf("a queue pair is called %s", name)
			}
		}
	}
	for x, fidelity := range map[string]job.Fidelity{"packet": job.Share, "flow": job.Step} {
		//lint:sorted each by itself
		run(x, "thin.json", fidelity, "t.json")
		if s := networkOf(t, out["t.json"].Bytes(), 0); len(s.queued)+s.pauses+len(s.pairs) > 0 {
			t.Errorf("%s: the trace shows a network of packets", x)
		}
	}
}
