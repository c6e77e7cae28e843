package chakra

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/workload"
)

func path(name string) string {
	return filepath.Join("..", "..", "..", "shared", "workloads", "samples", "chakra", name)
}

// traces reads the ranks of a folder.
func traces(t *testing.T, folder, prefix string, ranks int) (out []*Trace) {
	t.Helper()
	for r := range ranks {
		b, err := os.ReadFile(path(fmt.Sprintf("%s/%s.%d.et", folder, prefix, r)))
		if err != nil {
			t.Skip("the samples beside the checkout are not there: " + err.Error())
		}
		if !Recognise(b[:min(len(b), 512)]) {
			t.Errorf("%s rank %d is not recognised", folder, r)
		}
		tr, err := Read(bytes.NewReader(b), fmt.Sprintf("%s.%d.et", prefix, r))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tr)
	}
	return out
}

// member is a file of an archive.
func member(t *testing.T, archive, name string) []byte {
	t.Helper()
	f, err := os.Open(path(archive))
	if err != nil {
		t.Skip("the samples beside the checkout are not there: " + err.Error())
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for a := tar.NewReader(z); ; {
		h, err := a.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == name {
			b, err := io.ReadAll(a)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
}

// TestMicrobenchmarks: one collective of 1 MiB that each rank puts in.
func TestMicrobenchmarks(t *testing.T) {
	for name, want := range map[string]struct {
		f   coll.Func
		per int64
	}{"all_reduce": {coll.AllReduce, 1}, "all_gather": {coll.AllGather, 1}, "all_to_all": {coll.AllToAll, 0},
		"reduce_scatter": {coll.ReduceScatter, 0}} {
		for _, n := range []int{4, 8} {
			ts := traces(t, fmt.Sprintf("astra_%s.%d", name, n), name, n)
			p, notes, err := Program(ts, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Lint(); err != nil {
				t.Fatal(err)
			}
			bytes := int64(1 << 20)
			if want.per == 0 {
				bytes /= int64(n)
			}
			if ts[0].Version != "0.0.4" || len(notes) != 0 || len(p.Calls) != 1 ||
				p.Calls[0].Func != want.f || int64(p.Calls[0].Bytes()) != bytes || p.Ranks() != n {
				t.Errorf("%s %d: %+v %v", name, n, p.Calls, notes)
			}
		}
	}
}

// TestRing: MSCCL's ring as sends, receives and computations.
func TestRing(t *testing.T) {
	ts := traces(t, "astra_custom_ring_allreduce_8npus_1MB", "custom_allreduce", 8)
	if len(ts[3].Nodes) != 35 || ts[0].Version != "1.0.2-chakra.0.0.4" {
		t.Errorf("%d nodes, version %s", len(ts[3].Nodes), ts[0].Version)
	}
	p, notes, err := Program(ts, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	r, err := streams.Run(t.Context(), streams.Apart(p, nil, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	// Seven reductions of 7 µs follow each other around the ring.
	if us := r.Elapsed() / 1e6; us < 49 || len(notes) > 0 {
		t.Errorf("%v µs, %v", us, notes)
	}
	for _, c := range p.Calls {
		if c.Bytes() != 131072 {
			t.Errorf("%d bytes", c.Bytes())
		}
	}
}

// TestFeeder: a real trace of PyTorch, as protobuf and as JSON.
func TestFeeder(t *testing.T) {
	b := member(t, "chakra_feeder_tests_trace.tar.gz", "tests/data/chakra.0.et")
	if !Recognise(b[:512]) {
		t.Error("is not recognised")
	}
	tr, err := Read(bytes.NewReader(b), "chakra.0.et")
	if err != nil {
		t.Fatal(err)
	}
	colls := 0
	for _, n := range tr.Nodes {
		if n.HasColl {
			colls++
		}
	}
	if len(tr.Nodes) != 3664 || colls != 7 || tr.Version != "1.0.1" {
		t.Errorf("%d nodes, %d collectives, version %s", len(tr.Nodes), colls, tr.Version)
	}
	p, notes, err := Program([]*Trace{tr}, Options{Ranks: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	r, err := streams.Run(t.Context(), streams.Apart(p, streams.Recorded, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Elapsed(), notes)
	b = member(t, "chakra_json_trace.tar.gz", "jsonData/chakra.0.json")
	if !RecogniseJSON(b[:512]) {
		t.Error("is not recognised")
	}
	js, err := ReadJSON(bytes.NewReader(b), "chakra.0.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(js.Nodes) != 3664 || js.Nodes[0].ID != 216 || js.Nodes[1].Dur != 28 || !js.Nodes[0].CPU {
		t.Errorf("%d nodes: %+v", len(js.Nodes), js.Nodes[0])
	}
	if p, notes, err = Program([]*Trace{js}, Options{}); err != nil || p.Lint() != nil {
		t.Errorf("%v %v", notes, err)
	}
}

const program = `workload 1
ranks 4
comm dp *
comm tp0 0-1 kind=TP
comm tp1 2-3 kind=TP
work 1 gemm flops=100 bytes=200
list rank0 0
  compute h0 1500
  compute 7 1000000 work=1 after=0
  call 19 dp all_reduce bfloat16 avg 64 inplace time=5000 after=1
  call 7 tp0 send float sum 16 peer=1
  compute 7 7 after=2
list rank1 1
  compute h0 1500
  compute 7 1000000 work=1 after=0
  call 19 dp all_reduce bfloat16 avg 64 inplace time=5000 after=1
  call 7 tp0 recv float sum 16 peer=0
list rank2 2
  call 0 dp all_reduce bfloat16 avg 64 inplace time=5000
  call 0 tp1 broadcast float sum 3 root=1
  call 0 tp1 alltoall float sum 3 splits=3,4
list rank3 3
  call 0 dp all_reduce bfloat16 avg 64 inplace time=5000
  call 0 tp1 broadcast float sum 3 root=1
  call 0 tp1 alltoall float sum 3 splits=5,0
`

// TestRoundTrip: a program survives, and what other readers do not see is named.
func TestRoundTrip(t *testing.T) {
	p, err := workload.Parse(program, "p")
	if err != nil {
		t.Fatal(err)
	}
	ts, groups, lost, err := From(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"parts of a microsecond (3)",
		"splits of alltoall: other readers see equal parts (2)"}, lost); diff != "" {
		t.Error(diff)
	}
	var read []*Trace
	for i, x := range ts {
		var b bytes.Buffer
		if err := x.Write(&b); err != nil {
			t.Fatal(err)
		}
		if !Recognise(b.Bytes()) {
			t.Error("is not recognised")
		}
		y, err := Read(&b, fmt.Sprintf("x.%d.et", i))
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, y)
	}
	again, notes, err := Program(read, Options{Groups: groups})
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	// Streams are dependencies in the traces; Play shows that nothing else changed.
	a, err := streams.Run(t.Context(), streams.Apart(p, streams.Recorded, 0))
	if err != nil {
		t.Fatal(err)
	}
	b, err := streams.Run(t.Context(), streams.Apart(again, streams.Recorded, 0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	for i := range again.Lists {
		for k := range again.Lists[i].Steps {
			again.Lists[i].Steps[k].Deps = p.Lists[i].Steps[k].Deps
		}
	}
	if diff := cmp.Diff(p.Format(), again.Format()); diff != "" {
		t.Error(diff)
	}
}

// TestFaultsHavePlaces: the offset of the message.
func TestFaultsHavePlaces(t *testing.T) {
	p, err := workload.Parse(program, "p")
	if err != nil {
		t.Fatal(err)
	}
	ts, _, _, err := From(p)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ts[0].Write(&b); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	var e *Error
	if _, err := Read(bytes.NewReader(whole[:len(whole)-3]), "x"); !errors.As(err, &e) ||
		!strings.Contains(err.Error(), "the file ends within a message of") {
		t.Error(err)
	}
	broken := bytes.Clone(whole)
	broken[9] = 7 // the key of the first field of the second message
	if _, err := Read(bytes.NewReader(broken), "x"); !errors.As(err, &e) || !strings.HasPrefix(err.Error(),
		"x: byte 8 (message 1): ") {
		t.Error(err)
	}
	if _, _,
		err := Program([]*Trace{
		{File: "x", Nodes: []Node{{ID: 1, Data: []uint64{2}}, {ID: 2, Data: []uint64{1}}}}},
		Options{}); err == nil || err.Error() != "x: 2 nodes depend on each other in a cycle" {
		t.Error(err)
	}
}

// FuzzRead: an error, or a trace that survives being written.
func FuzzRead(f *testing.F) {
	p, err := workload.Parse(program, "p")
	if err != nil {
		f.Fatal(err)
	}
	ts, _, _, err := From(p)
	if err != nil {
		f.Fatal(err)
	}
	for _, x := range ts {
		var b bytes.Buffer
		if err := x.Write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Read(bytes.NewReader(b), "x")
		if err != nil {
			return
		}
		if p, _, err := Program([]*Trace{x}, Options{Ranks: 3}); err == nil {
			_ = p.Lint()
		}
		var out bytes.Buffer
		if err := x.Write(&out); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(&out, "x"); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzJSON: nothing panics.
func FuzzJSON(f *testing.F) {
	f.Add(`{"workload_graph": [{"Id": 3, "Name": "x", "NodeType": 7, "ctrlDeps": [2], "data_deps": [], "runtime": 3, "is_cpu_op": false, "comm_type": "0", "comm_size": 64}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ReadJSON(strings.NewReader(text), "x")
		if err != nil {
			return
		}
		if p, _, err := Program([]*Trace{x}, Options{Ranks: 2}); err == nil {
			_ = p.Lint()
		}
	})
}
