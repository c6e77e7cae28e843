package chrome

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// story is the example of the schema: two ranks, one transfer, one link.
func story(sink trace.Sink) {
	us := func(v float64) units.Time { return units.FromMicros(v) }
	rec := nccl.New(sink, nccl.Options{Detail: nccl.DetailStep, Predicted: us(44.4), Tuner: "model"})
	for r := range 2 {
		rec.AddRank(nccl.Rank{Rank: r, Node: 0, GPU: r, BusID: fmt.Sprintf("0000:%02x:00.0", 0x1b+r),
			Host: "node0"})
	}
	c := nccl.Coll{Func: "AllReduce", SeqNum: 1, CommHash: "0x5f1a09c2", Count: 1 << 20,
		Datatype:  "ncclFloat32",
		Algorithm: "RING", Protocol: "SIMPLE", NChannels: 1, Bytes: 4 << 20, AlgBW: 94.4, BusBW: 94.4}
	link := rec.Link("GPU0→NVS", 450)
	flow := rec.Flow()
	rec.Rate(link, us(6.5), 48.5)
	rec.Steps(&nccl.Step{Rank: 0, Dir: nccl.Send, Peer: 1, Bytes: 131072, Transport: "P2P/CUMEM", Chunk: -1},
		flow,
		nccl.Phase{Wait: nccl.SendGPUWait, Start: us(5), End: us(6.5)},
		nccl.Phase{Wait: nccl.SendWait, Start: us(6.5), End: us(17.333)})
	rec.Steps(&nccl.Step{Rank: 1, Dir: nccl.Recv, Peer: 0, Bytes: 131072, Transport: "P2P/CUMEM", Chunk: -1},
		flow,
		nccl.Phase{Wait: nccl.RecvWait, Start: us(6.9), End: us(18.1)})
	for r := range 2 {
		rec.Call(r, 0, us(2), nccl.API{Cat: "COLL_API", Name: "AllReduce", Count: 1 << 20,
			Datatype: "ncclFloat32", Stream: "0x0"})
		rec.Kernel(r, 0, 0, us(4), us(44), new(nccl.Terms))
		rec.Collective(nccl.Operation{Rank: r, Start: us(1), End: us(44.412)}, c)
	}
	rec.Decision(0, us(1), "RING/SIMPLE", "TREE/SIMPLE", 1.25)
	rec.Critical(us(5), us(17.333), "SendWait", 0, 0)
	rec.Finish(us(44.412))
}

func render(t *testing.T, opt Options, fill func(trace.Sink)) string {
	t.Helper()
	var out bytes.Buffer
	w := New(&out, opt)
	fill(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) {
		t.Fatalf("not valid JSON:\n%s", out.String())
	}
	return out.String()
}

func TestStoryGolden(t *testing.T) {
	opt := Options{Meta: Meta{Source: "sim", Version: "v0.0.0", NCCLRules: "2.28.9", Topo: "sha256:00",
		Seed: 1, Clock: "sim",
		Env: []trace.Arg{trace.Str("NCCL_ALGO", "Ring")}}}
	got := render(t, opt, story)
	path := filepath.Join("testdata", "story.json")
	if os.Getenv("SIMCCL_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("trace differs from %s:\n%s", path, got)
	}
}

// noise emits n slices in a scrambled order on a few tracks.
func noise(n int) func(trace.Sink) {
	return func(s trace.Sink) {
		rng := rand.New(rand.NewPCG(1, 2))
		var ids []trace.TrackID
		for i := range 8 {
			ids = append(ids, s.Track(trace.Track{Process: 1000000, ProcessName: "p", Thread: int64(i + 1),
				ThreadName: "t"}))
		}
		for i := range n {
			start := units.Time(i)*units.Microsecond + units.Time(rng.Int64N(int64(100*units.Microsecond)))
			s.Emit(&trace.Event{Track: ids[rng.IntN(8)], Start: start,
				Dur: units.Time(rng.Int64N(int64(units.Microsecond))),
				Cat: "NET", Name: "SendWait", Args: []trace.Arg{trace.Int("Step", int64(i))}})
		}
	}
}

// However small the sorting memory, the file is the same: the spool and the
// merge change nothing.
func TestSpoolChangesNothing(t *testing.T) {
	whole := render(t, Options{}, noise(20000))
	for _, size := range []int{100, 4096, 100000} {
		if got := render(t, Options{BatchBytes: size, Spool: spoolIn(t.TempDir())},
			noise(2000*min(size/100, 10))); size >= 1000 && got != whole {
			t.Errorf("batches of %d bytes give another file", size)
		}
	}
}

func TestEventsAreInTimeOrder(t *testing.T) {
	got := render(t, Options{BatchBytes: 5000, Spool: spoolIn(t.TempDir())}, noise(3000))
	last, seen := -1.0, 0
	for line := range strings.Lines(got) {
		i := strings.Index(line, `"ts":`)
		if i < 0 {
			continue
		}
		var ts float64
		if _, err := fmt.Sscanf(line[i+5:], "%f", &ts); err != nil {
			t.Fatal(err)
		}
		if ts < last {
			t.Fatalf("%s comes after ts %v", line, last)
		}
		last = ts
		seen++
	}
	if seen != 3000 {
		t.Fatalf("%d events, want 3000", seen)
	}
}

// What exceeds the budget is counted, operations stay, counters end at zero.
func TestBudgetIsRecorded(t *testing.T) {
	got := render(t, Options{MaxEvents: 3}, story)
	if !strings.Contains(got, `"left_out":{"P2P_XFER":2,"counter":2,"flow":2,"sim":1}`) ||
		strings.Count(got, `"cat":"COLL"`) != 2 {
		t.Errorf("budget of 3:\n%s", got)
	}
	if !strings.Contains(got, `"args":{"GB/s":0}`) {
		t.Errorf("counter does not end at zero:\n%s", got)
	}
}

func TestCreateLeavesNothingHalfWritten(t *testing.T) {
	dir := t.TempDir()
	w, err := createFile(filepath.Join(dir, "t.json.gz"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := w.Track(trace.Track{Process: 1, Thread: 2})
	w.Emit(&trace.Event{Track: id, Start: -units.Microsecond, Dur: 1, Name: "early"})
	if err := w.Close(); err == nil {
		t.Error("an event before the trace was accepted")
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := createFile(filepath.Join(dir, "none", "t.json"), Options{}); err == nil {
		t.Error("a missing directory was accepted")
	}
}

func TestStringsAreJSON(t *testing.T) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\x00", "leaf0→spine1", "bad \xff utf8", "\u2028"} {
		var back string
		if err := json.Unmarshal(appendString(nil, s), &back); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); back != want {
			t.Errorf("%q came back as %q", s, back)
		}
	}
}

// steps emits n steps of proxies. Ends come in order, starts do not: as a simulator
// emits them.
func steps(s trace.Sink, n int) {
	id := s.Track(trace.Track{Process: 1000000, Thread: 10000})
	args := []trace.Arg{trace.Int("Step", 3), trace.Int("Peer", 1), trace.Int("bytes", 131072),
		trace.Int("slot", 3), trace.Str("transport", "P2P/CUMEM")}
	ev := trace.Event{Track: id, Cat: "NET", Name: "SendWait", Args: args, Dur: 10 * units.Microsecond}
	for i := range n {
		ev.Start = units.Time(i)*units.Microsecond + units.Time(i%7)*20*units.Microsecond
		s.Emit(&ev)
	}
}

// BenchmarkWriter writes files of 200,000 steps to their end; MB/s are those of text.
func BenchmarkWriter(b *testing.B) {
	var out countingWriter
	b.ReportAllocs()
	for b.Loop() {
		w := New(&out, Options{Spool: spoolIn(b.TempDir())})
		steps(w, 200_000)
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(out) / int64(b.N))
}

type countingWriter int64

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

// The layout of NCCL's profiler plugin: pairs on thread 1, with its keys in its
// order, and valid.
func TestNCCLStyle(t *testing.T) {
	got := render(t, Options{NCCLStyle: true}, story)
	for _, want := range []string{
		`{"name":"AllReduce","cat":"COLL","ph":"b","id":10,"pid":1000001,"tid":1,"ts":1.000,"args":{"SeqNum":1,"CommHash":"0x5f1a09c2","Rank":1,`,
		`{"name":"AllReduce","cat":"COLL","ph":"e","id":10,"pid":1000001,"tid":1,"ts":44.412}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, `"ph":"X"`) || strings.Contains(got, `"ph":"C"`) ||
		strings.Count(got, `"ph":"b"`) != strings.Count(got, `"ph":"e"`) {
		t.Errorf("other events than pairs:\n%s", got)
	}
}

// TestCancelledWriterEnds: at whatever point it is cancelled, a writer ends with
// the reason, and leaves the old file and no other.
func TestCancelledWriterEnds(t *testing.T) {
	dir := t.TempDir()
	why := errors.New("cancelled")
	fill := func(w *Writer) {
		id := w.Track(trace.Track{Process: 1, Thread: 1})
		for i := range 20_000 {
			w.Emit(&trace.Event{Phase: trace.Slice, Track: id, Name: "step", Cat: "NET",
				Start: units.Time(i) * units.Microsecond, Dur: 900 * units.Nanosecond})
		}
	}
	for _, name := range []string{"t.json", "t.json.gz"} {
		path := filepath.Join(dir, name)
		var polls atomic.Int64 // the goroutine that spills polls as well
		create := func(end int) *Writer {
			polls.Store(0)
			w, err := createFile(path, Options{BatchBytes: 1 << 17, Cancelled: func() error {
				if n := polls.Add(1); end > 0 && int(n) >= end {
					return why
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		w := create(0)
		fill(w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if n, of := w.Progress(); n != 20_000 || of != 20_000 {
			t.Errorf("%s: %d of %d events written", name, n, of)
		}
		whole := int(polls.Load())
		old, err := os.ReadFile(path)
		if err != nil || whole < 10 {
			t.Fatalf("polled %d times: %v", whole, err)
		}
		for end := 1; end <= whole; end++ {
			w := create(end)
			fill(w)
			if err := w.Close(); !errors.Is(err, why) {
				t.Fatalf("%s cancelled at poll %d of %d: %v", name, end, whole, err)
			}
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, old) {
			t.Errorf("%s: the old file changed: %v", name, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("files %v %v", list, err)
	}
}

// spoolIn opens spool files in a directory.
func spoolIn(dir string) func() (Spool, error) {
	return func() (Spool, error) {
		f, err := newfile.Scratch(dir)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
}

// createFile is trace/file's Create, which imports this package.
func createFile(path string, opt Options) (*Writer, error) {
	file, err := newfile.Create(path)
	if err != nil {
		return nil, err
	}
	opt.Spool = spoolIn(filepath.Dir(path))
	return To(file, path, opt), nil
}
