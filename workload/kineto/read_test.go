package kineto

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"
)

// shared opens a file of the recordings beside the checkout.
func shared(t testing.TB, path string) []byte {
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "workloads", path))
	if err != nil {
		t.Skip("the recordings beside the checkout are not there: " + err.Error())
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTruth: counts of the recorded DDP job of two steps.
func TestTruth(t *testing.T) {
	tr, err := Read(bytes.NewReader(shared(t, "truth/ddp/trace_rank0.json.gz")), "ddp")
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Ops) != 768+152 || len(tr.Steps) != 2 || tr.Rank != 0 || tr.World != 4 ||
		tr.GPU != "NVIDIA H200" || tr.SMs != 132 || tr.NCCL != "2.28.9" {
		t.Errorf("%d ops, %d steps, %+v", len(tr.Ops), len(tr.Steps), tr.Groups)
	}
	for _, n := range tr.Notes {
		t.Log(n)
	}
}

// TestSizeOfOp: the memory of an operation is bounded.
func TestSizeOfOp(t *testing.T) {
	if n := unsafe.Sizeof(Op{}); n > 100 {
		t.Errorf("%d bytes", n)
	}
}

func BenchmarkRead(b *testing.B) {
	text := shared(b, "truth/tp/trace_rank0.json.gz")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(text), "f"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTimesThatCannotBe: events that end before they begin or take weeks are passed over,
// with a note; sizes beyond 63 bits stay too large.
func TestTimesThatCannotBe(t *testing.T) {
	tr, err := Read(bytes.NewReader([]byte(`{"traceEvents":[
		{"ph":"X","cat":"kernel","name":"a","ts":1,"dur":2,"args":{"stream":7}},
		{"ph":"X","cat":"kernel","name":"a","ts":2,"dur":-5,"args":{"stream":7}},
		{"ph":"X","cat":"kernel","name":"a","ts":3,"dur":1e15,"args":{"stream":7}},
		{"ph":"X","cat":"kernel","name":"a","ts":NaN,"dur":1,"args":{"stream":7}},
		{"ph":"X","cat":"cpu_op","name":"record_param_comms","ts":4,"dur":1,"args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":99999999999999999999}}]}`)), "f")
	if err != nil || len(tr.Ops) != 1 || len(tr.Notes) != 1 || len(tr.Comms) != 1 ||
		tr.Comms[0].In != 1<<63-1 {
		t.Errorf("%v: %+v", err, tr)
	}
}
