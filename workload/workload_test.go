package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/coll"
)

const pair = `workload 1
ranks 4
comm world *
comm even 0,2
comm odd 1,3
list a 0,2
  compute 0 2500000
  record 0 1
  wait 1 1
  call 1 even all_gather half sum 4096
  group 0
  call 0 world all_reduce float sum 1024
  call 0 world broadcast float sum 10 root=3
  end 0
list b 1,3
  call 1 odd all_reduce bfloat16 max 8 inplace
  call 0 world all_reduce float sum 1024
  call 0 world broadcast float sum 10 root=3
`

// TestTextForm: a program survives its text; equal calls are one.
func TestTextForm(t *testing.T) {
	p, err := Parse(pair, "p")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Calls) != 4 || p.Ranks() != 4 || p.Comms[2].Size(4) != 2 || p.Comms[0].Size(4) != 4 {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff(pair, p.Format()); diff != "" {
		t.Error(diff)
	}
	if _, ok := p.Single(); ok {
		t.Error("several calls pass for a single one")
	}
}

const parallel = `workload 1
ranks 4
comm world *
comm "tp 0" 0-1 kind=TP parent=world share desc="tensor parallel #0"
comm pp 1-2 kind=PP
work 1 gemm flops=1000000 bytes=3000 blocks=132 persm=1 tiles=1024 cluster=2 priority=-1 persistent
work 2 "add, 4096" bytes=8
factor 1.25 3
list a 0
  mark step0
  compute h0 900 start=10
  compute 1 2500000 work=1 after=0 start=1000
  call 0 "tp 0" all_reduce half sum 4096 window registered time=5000 after=0-1
  call 1 world alltoall float sum 0 splits=4,3,2,1
  mark "step 1"
list b 1
  call 0 "tp 0" all_reduce half sum 4096 window
  group 0
  call 2 pp send bfloat16 sum 16 peer=1
  call 2 pp recv bfloat16 sum 8 peer=1
  end 0
  call 1 world alltoall float sum 0 splits=1,2,3,4
list c 2
  call 0 pp recv float sum 8 peer=0
  call 0 pp send bfloat16 sum 8 peer=0
  call 1 world alltoall float sum 0 splits=0,0,0,9
list d 3
  call 1 world alltoall float sum 0 splits=4,3,2,1
`

// TestParallelJobs: communicators with kinds and parents, messages, kernels,
// marks and slow ranks survive their text.
func TestParallelJobs(t *testing.T) {
	p, err := Parse(parallel, "p")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parallel, p.Format()); diff != "" {
		t.Error(diff)
	}
	if p.Resources(1) != 0 || p.Resources(2) != 2 || p.FactorOf(3) != 1.25 || p.FactorOf(0) != 1 ||
		len(p.Marks) != 2 || p.Marks[1].Step != 4 {
		t.Errorf("%+v", p)
	}
	if !OnHost(p.Lists[0].Steps[0].Stream) || OnHost(p.Lists[0].Steps[1].Stream) {
		t.Error("h0 is a thread of the host, 1 is none")
	}
	for _, x := range []struct{ from, to, want string }{
		{"recv bfloat16 sum 8 peer=1", "recv bfloat16 sum 8 peer=0",
			"rank 0 of pp receives from rank 0, which does not send it"},
		{"recv bfloat16 sum 8 peer=1", "recv bfloat16 sum 9 peer=1",
			"rank 1 of pp sends 16 bytes to rank 0, which receives 18"},
		{"  call 2 pp send bfloat16 sum 16 peer=1\n", "",
			"rank 1 of pp receives from rank 0, which does not send it"},
		{"splits=0,0,0,9", "splits=0,0,9", "call 8 has counts for 3 peers"},
		{"after=0-1", "after=0-2", "p:13:"},
		{"parent=world share", "share", "communicator tp 0 shares its parent's resources and has no parent"},
		{"comm pp 1-2 kind=PP", "comm pp 1-2 kind=PP parent=tp", "p:5:28: no communicator tp"},
		{"comm pp 1-2 kind=PP", "comm pp 1-2 parent=\"tp 0\"",
			"communicator pp has rank 2, which its parent tp 0 has not"},
		{"compute h0 900", "call h0 pp send float sum 1 peer=1", "a call on a host thread"},
		{"factor 1.25 3", "factor 0 3", "p:8:8: 0 is no factor"},
		{"work=1 after", "work=3 after", "p:12:26: no work 3"},
		{"mark \"step 1\"", "mark \"step 1", "p:15:8: the quote has no end"},
	} {
		wrong := strings.Replace(parallel, x.from, x.to, 1)
		if wrong == parallel {
			t.Fatalf("%q is not in the text", x.from)
		}
		if _, err := Parse(wrong, "p"); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s → %s: %v, want %s", x.from, x.to, err, x.want)
		}
	}
}

// TestOneIsTheSmallest: one operation is a program, and is known as such.
func TestOneIsTheSmallest(t *testing.T) {
	c := Call{Func: coll.AllReduce, Count: 1024, Type: coll.Float32}
	p := One(16, c)
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	if got, ok := p.Single(); !ok || !got.Equal(c) {
		t.Errorf("%+v, %v", got, ok)
	}
	again, err := Parse(p.Format(), "p")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, again); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]func(*Program){
		"a subset":   func(p *Program) { p.Comms[0].Ranks = []int32{0, 1} },
		"two steps":  func(p *Program) { p.Lists[0].Steps = append(p.Lists[0].Steps, Step{}) },
		"compute":    func(p *Program) { p.Lists[0].Steps[0].Kind = Compute },
		"two comms":  func(p *Program) { p.Comms = append(p.Comms, Comm{Name: "x"}) },
		"a stream 1": func(p *Program) { p.Lists[0].Steps[0].Stream = 1 },
	} {
		p := One(4, c)
		change(p)
		if _, ok := p.Single(); ok {
			t.Errorf("%s passes for a single operation", name)
		}
	}
}

// TestFaultsHavePlaces: of texts line and column, of programs list and step.
func TestFaultsHavePlaces(t *testing.T) {
	for _, x := range []struct{ from, to, want string }{
		{"workload 1", "workload 2", "p:1:1: the first line must be workload 1"},
		{"ranks 4", "ranks 0", "p:2:1: the number of ranks is expected"},
		{"comm even 0,2", "comm even 0,4", "p:4:11: 4: ranks are from 0 to 3"},
		{"comm odd", "comm even", "p:5:6: communicator even for the second time"},
		{"list b 1,3", "list b 1-2", "p:15:8: rank 2 has list a already"},
		{"list b 1,3", "list b 1", "rank 3 has no list"},
		{"compute 0 2500000", "compute 0 -1", "p:7:13: -1 is no time in picoseconds"},
		{"call 1 even", "call 1 evan", "p:10:10: no communicator evan; write comm evan … before it"},
		{"all_gather half", "all_gather hlaf", "p:10:26: "},
		{"sum 4096", "sum 4096 root=1", "p:10:40: root=1 is not known here"},
		{"sum 4096", "sum 4611686018427387904", "call 0 is of 4611686018427387904 elements on each of 2 " +
			"ranks; all of them together have at most"},
		{"  end 0\n", "", "list a: 1 groups are not ended"},
		{"  group 0\n", "", "list a, step 6: ends a group that was not started"},
		{"record 0 1", "record 0 2", "list a, step 2: waits for event 1, which no earlier step records"},
		{"call 1 odd", "call 1 even", "rank 1 calls on communicator even and is no member of it"},
		{"call 0 world all_reduce float sum 1024\n  call 0 world broadcast float sum 10 root=3\n  end",
			"call 0 world all_reduce float sum 1025\n  call 0 world broadcast float sum 10 root=3\n  end",
			"list b: call 0 on world is all_reduce float of 1024 elements, but all_reduce float of 1025 " +
				"elements in list a; the members would wait for each other forever"},
		{"root=3\n  end", "root=4\n  end", "call 2 has root 4; the communicator has ranks 0 to 3"},
		{"  record 0 1\n", "  frobnicate 0 1\n", "p:8:3: frobnicate is not known here"},
	} {
		text := strings.Replace(pair, x.from, x.to, 1)
		if text == pair {
			t.Fatalf("%q is not in the text", x.from)
		}
		if _, err := Parse(text, "p"); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s → %s: %v, want %s", x.from, x.to, err, x.want)
		}
	}
}

// TestRate: what each rank's links carry at least, by hand.
func TestRate(t *testing.T) {
	p, err := Parse("workload 1\nranks 4\ncomm world *\nlist a 0-3\n  compute 0 1\n", "p")
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[coll.Func]float64{coll.AllReduce: 4e9, coll.AllGather: 12e9,
		coll.ReduceScatter: 12e9, coll.AllToAll: 12e9, coll.Broadcast: 4e9, coll.Send: 4e9} {
		// 4,000 bytes in a microsecond
		c := Call{Func: f, Type: coll.Float32, Count: 1000, Recorded: 1_000_000}
		if got := p.Rate(&c); got != want {
			t.Errorf("%v: %g, want %g", f, got, want)
		}
		if c.Recorded = 0; p.Rate(&c) != 0 {
			t.Errorf("%v without a time has a rate", f)
		}
	}
}

// FuzzParse: a text is a program that can be carried out and survives being
// written, or an error.
func FuzzParse(f *testing.F) {
	f.Add(pair)
	f.Add(parallel)
	f.Add(folded)
	f.Add(One(2, Call{Func: coll.SendRecv, Type: coll.Int8, Count: 5}).Format())
	f.Fuzz(func(t *testing.T, text string) {
		p, err := read(strings.NewReader(text), "p", 1<<12)
		if err != nil {
			return
		}
		again, err := Parse(p.Format(), "p")
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Format())
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestKernelsInPlaceOfNCCL survive their text, and other words of them are refused with what to write.
func TestKernelsInPlaceOfNCCL(t *testing.T) {
	text := "workload 1\nranks 2\nmodel m parameters=9 tokens=4 flops=3 phase=decode\ncomm w *\n" +
		"list a 0-1\n  call 0 w all_reduce half sum 8 kernel=vllm\n" +
		"  call 0 w alltoall half sum 8 kernel=deepep:8:2:64:5:combine\n" +
		"  call 0 w alltoall half sum 8 kernel=deepep:8:2:64:5:4:2\n"
	p, err := Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, p.Format()); diff != "" {
		t.Error(diff)
	}
	want := Kernel{Name: "deepep", Args: [6]int64{8, 2, 64, 5}, Combine: true}
	if p.Calls[1].Kernel != want || p.Calls[0].Equal(Call{Func: p.Calls[0].Func, Count: 8}) {
		t.Errorf("%+v", p.Calls)
	}
	for _, bad := range []string{"deepep:8", "deepep:8:2:64:0", "deepep:8:2:64:5:dispatch", ":8:2:64:5",
		"vllm:"} {
		if _, err := Parse(strings.Replace(text, "deepep:8:2:64:5:combine", bad, 1), "p"); err == nil ||
			!strings.Contains(err.Error(), "p:7:39: ") || !strings.Contains(err.Error(),
			"write kernel=vllm") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestFactorsOfRanks: each rank has one, above 0 and at most a million.
func TestFactorsOfRanks(t *testing.T) {
	for _, x := range []struct {
		factors []float64
		want    string
	}{{[]float64{1, MaxFactor}, ""}, {[]float64{1}, "there are 1 factors for 2 ranks"},
		{[]float64{1, 0}, "rank 1 has a factor of 0;"}, {[]float64{-2, 1}, "rank 0 has a factor of -2;"},
		{[]float64{1, 2 * MaxFactor}, "rank 1 has a factor of 2e+06;"},
		{[]float64{math.NaN(), 1}, "rank 0 has a factor of NaN;"}} {
		p := One(2, Call{Func: coll.AllReduce, Type: coll.Float32, Count: 4})
		p.Factor = x.factors
		switch err := p.Lint(); {
		case x.want == "" && err != nil:
			t.Errorf("%v: %v", x.factors, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%v: %v, want %s", x.factors, err, x.want)
		}
	}
}
