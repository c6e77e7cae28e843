package validate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

func check(t *testing.T, text string) *Report {
	t.Helper()
	rep, err := Check(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return rep
}

// What our own recorder and writer make passes every rule, whatever the lanes.
func TestOwnTracesPass(t *testing.T) {
	var out bytes.Buffer
	w := chrome.New(&out, chrome.Options{})
	rec := nccl.New(w, nccl.Options{Detail: nccl.DetailPacket})
	link := rec.Link("GPU0→NVS", 450)
	end := units.Time(0)
	for i := range 200 {
		at := units.Time(i) * 700 * units.Nanosecond
		flow := rec.Flow()
		rec.Rate(link, at, float64(i%5))
		rec.Transfer(link, at, at+2500*units.Nanosecond, 0, 1, 0, 4096)
		rec.Steps(&nccl.Step{Rank: 0, Dir: nccl.Send, Peer: 1, Step: int64(i), Bytes: 4096,
			Transport: "NET/IB", Chunk: -1}, flow,
			nccl.Phase{Wait: nccl.SendGPUWait, Start: at, End: at + 300*units.Picosecond},
			nccl.Phase{Wait: nccl.SendWait, Start: at + 300*units.Picosecond, End: at + 3*units.Microsecond})
		end = at + 4*units.Microsecond
		rec.Steps(&nccl.Step{Rank: 1, Dir: nccl.Recv, Peer: 0, Step: int64(i), Bytes: 4096,
			Transport: "NET/IB", Chunk: -1}, flow,
			nccl.Phase{Wait: nccl.RecvWait, Start: at + 100, End: at + 3500*units.Nanosecond},
			nccl.Phase{Wait: nccl.RecvGPUWait, Start: at + 3500*units.Nanosecond, End: end})
	}
	rec.Finish(end)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rep := check(t, out.String())
	for _, p := range rep.Problems {
		t.Error(p)
	}
	if rep.Flows != 200 || rep.Slices != 800 {
		t.Errorf("%d arrows, %d slices, want 200 and 800", rep.Flows, rep.Slices)
	}
}

// Each rule is broken once by an otherwise good trace, and found in its line.
func TestEachRuleFinds(t *testing.T) {
	x := `{"ph":"X","pid":1,"tid":2,"ts":1.000,"dur":5.000,"name":"a"}`
	for _, c := range []struct{ name, lines, want string }{
		{"overlap", x + ",\n" + `{"ph":"X","pid":1,"tid":2,"ts":5.5,"dur":1,"name":"b"}`,
			`4: error: slice "b" partly overlaps "a" of line 3`},
		{"touching is no overlap", x + ",\n" + `{"ph":"X","pid":1,"tid":2,"ts":6,"dur":1,"name":"b"}`, ""},
		{"nested", x + ",\n" + `{"ph":"X","pid":1,"tid":2,"ts":2,"dur":4,"name":"b"}`, ""},
		{"other track", x + ",\n" + `{"ph":"X","pid":1,"tid":3,"ts":5.5,"dur":1,"name":"b"}`, ""},
		{"short", `{"ph":"X","pid":1,"tid":2,"ts":1,"dur":0.0009,"name":"a"}`, "shorter than 1 ns"},
		{"negative ts", `{"ph":"X","pid":1,"tid":2,"ts":-1,"dur":5,"name":"a"}`, "shift the trace"},
		{"negative dur", `{"ph":"X","pid":1,"tid":2,"ts":1,"dur":-5,"name":"a"}`, "lasts -5.000000us"},
		{"text ts", `{"ph":"X","pid":1,"tid":2,"ts":"1","dur":5,"name":"a"}`, "must be JSON numbers"},
		{"no ts", `{"ph":"X","pid":1,"tid":2,"dur":5,"name":"a"}`, "has no ts"},
		{"no dur", `{"ph":"X","pid":1,"tid":2,"ts":5,"name":"a"}`, "has no dur"},
		{"late metadata", x + ",\n" + `{"ph":"M","pid":1,"name":"process_name","args":{"name":"p"}}`,
			"4: error: metadata"},
		{"metadata ts", `{"ph":"M","pid":1,"ts":3,"name":"process_name","args":{"name":"p"}}`,
			"leave it out"},
		{"B without E", `{"ph":"B","pid":1,"tid":2,"ts":1,"name":"a"}`, "begin of \"a\" without an end"},
		{"E without B", `{"ph":"E","pid":1,"tid":2,"ts":1,"name":"a"}`, "end of \"a\" without a begin"},
		{"E of another", `{"ph":"B","pid":1,"tid":2,"ts":1,"name":"a"},` + "\n" +
			`{"ph":"E","pid":1,"tid":2,"ts":2,"name":"b"}`, `but "a" of line 3 is open`},
		{"b without e", `{"ph":"b","pid":1,"tid":2,"ts":1,"id":7,"cat":"c","name":"a"}`,
			"begin of \"a\" without an end"},
		{"e without b", `{"ph":"e","pid":1,"tid":2,"ts":1,"id":7,"cat":"c","name":"a"}`,
			"(id 7) without a begin"},
		{"arrow without start", x + ",\n" +
			`{"ph":"f","bp":"e","pid":1,"tid":2,"ts":2,"id":"0x1","cat":"flow","name":"xfer"}`,
			"4: error: arrow 0x1 ends, but never starts"},
		{"arrow back in time", x + ",\n" +
			`{"ph":"s","pid":1,"tid":2,"ts":3,"id":1,"cat":"flow","name":"xfer"},` + "\n" +
			`{"ph":"f","pid":1,"tid":2,"ts":2,"id":1,"cat":"flow","name":"xfer"}`, "before it starts"},
		{"arrow in the air", x + ",\n" +
			`{"ph":"s","pid":1,"tid":9,"ts":3,"id":1,"cat":"flow","name":"xfer"},` + "\n" +
			`{"ph":"f","pid":1,"tid":2,"ts":4,"id":1,"cat":"flow","name":"xfer"}`,
			"4: error: arrow starts outside every slice"},
		{"open arrow", x + ",\n" + `{"ph":"s","pid":1,"tid":2,"ts":3,"id":1,"cat":"flow","name":"xfer"}`,
			"never ends"},
		{"counter", `{"ph":"C","pid":1,"ts":3,"name":"link","args":{"GB/s":2}}`,
			`counter "link" does not end at 0`},
		{"counter text", `{"ph":"C","pid":1,"ts":3,"name":"link","args":{"GB/s":"2"}}`, "is no number"},
		{"tid is pid", `{"ph":"X","pid":2,"tid":2,"ts":1,"dur":5,"name":"a"}`, "main thread"},
		{"no phase", `{"pid":2,"tid":1,"ts":1,"name":"a"}`, "no event type"},
	} {
		rep := check(t, `{"otherData":{"schema":"simccl/1"},"traceEvents":[`+"\n\n"+c.lines+"\n]}\n")
		if c.want == "" {
			if len(rep.Problems) != 0 {
				t.Errorf("%s: %v", c.name, rep.Problems)
			}
			continue
		}
		if len(rep.Problems) == 0 || !strings.Contains(rep.Problems[0].String(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, rep.Problems, c.want)
		}
	}
}

// NCCL 2.28.9's example profiler writes values without quotes and ends its
// list with {}; times count from the process start, tracks are all tid 1.
func TestNCCLProfilerOutputIsUnderstood(t *testing.T) {
	rep := check(t, `[
{"name": "AllReduce", "cat": "COLL_API", "ph": "b", "id": 3, "pid": 812, "tid": 1, "ts": 10.250000, "args": {"count": 4, "datatype": ncclFloat32, "root": 0, "GraphCaptured": 0, "Stream": 0x55d0}},
{"name": "AllReduce", "cat": "COLL_API", "ph": "e", "id": 3, "pid": 812, "tid": 1, "ts": 12.500000},
{}]
`)
	if rep.Errors != 0 || rep.Info.Repaired != 3 || rep.Async != 1 || rep.Info.FirstRepair.Line != 2 {
		t.Errorf("%+v", rep)
	}
}

// Traces of PyTorch count from the epoch, with words for threads.
func TestEpochTimesKeepTheirNanoseconds(t *testing.T) {
	rep := check(t, `{"traceEvents":[
{"ph":"X","pid":"python","tid":"stream 7","ts":1700000000000000.125,"dur":0.500,"name":"a"},
{"ph":"X","pid":"python","tid":"stream 7","ts":1700000000000000.624,"dur":1,"name":"b"}]}`)
	if rep.Errors != 0 || rep.Warnings != 1 || rep.Problems[0].Rule != "overlap" {
		t.Errorf("one nanosecond of overlap not found: %v", rep.Problems)
	}
}

// TestWhatViewersShowIsAWarningInOthersTraces: a profiler's window cuts arrows and
// slices, and threads that share a number overlap; in ours all of it is an error.
// What viewers leave out is an error in both.
func TestWhatViewersShowIsAWarningInOthersTraces(t *testing.T) {
	shown := map[string]string{
		"an arrow without a begin":        `{"ph":"f","bp":"e","pid":1,"tid":2,"ts":5,"id":3,"cat":"ac2g","name":"ac2g"}`,
		"an arrow that ends twice":        `{"ph":"s","pid":1,"tid":2,"ts":4,"id":3,"cat":"c","name":"x"},{"ph":"f","pid":1,"tid":2,"ts":5,"id":3,"cat":"c","name":"x"},{"ph":"f","pid":1,"tid":2,"ts":6,"id":3,"cat":"c","name":"x"}`,
		"an arrow backwards":              `{"ph":"s","pid":1,"tid":2,"ts":5,"id":3,"cat":"c","name":"x"},{"ph":"f","pid":1,"tid":2,"ts":4,"id":3,"cat":"c","name":"x"}`,
		"an arrow outside of slices":      `{"ph":"s","pid":1,"tid":2,"ts":5,"id":3,"cat":"c","name":"x"},{"ph":"f","pid":1,"tid":2,"ts":50,"id":3,"cat":"c","name":"x"}`,
		"slices that overlap partly":      `{"ph":"X","pid":1,"tid":2,"ts":5,"dur":50,"name":"b"}`,
		"an end before the window":        `{"ph":"E","pid":1,"tid":2,"ts":5,"name":"b"}`,
		"a begin whose end comes later":   `{"ph":"B","pid":1,"tid":3,"ts":5,"name":"b"}`,
		"the end of another name":         `{"ph":"B","pid":1,"tid":3,"ts":5,"name":"b"},{"ph":"E","pid":1,"tid":3,"ts":6,"name":"c"}`,
		"an asynchronous end by itself":   `{"ph":"e","pid":1,"tid":2,"ts":5,"id":3,"cat":"c","name":"x"}`,
		"an asynchronous begin by itself": `{"ph":"b","pid":1,"tid":2,"ts":5,"id":3,"cat":"c","name":"x"}`,
	}
	for what, event := range shown {
		events := `"traceEvents":[{"ph":"X","pid":1,"tid":2,"ts":0,"dur":10,"name":"a"},` + event + `]}`
		if rep := check(t, `{"schemaVersion":1,`+events); rep.Errors != 0 || rep.Warnings == 0 {
			t.Errorf("%s, another program's: %d errors, %d warnings", what, rep.Errors, rep.Warnings)
		}
		if rep := check(t, `{"otherData":{"schema":"simccl/1"},`+events); rep.Errors == 0 {
			t.Errorf("%s, ours: %v", what, rep.Problems)
		}
	}
	for what, event := range map[string]string{"no time": `{"ph":"X","pid":1,"tid":2,"dur":5,"name":"b"}`,
		"a slice of less than nothing": `{"ph":"X","pid":1,"tid":2,"ts":3,"dur":-5,"name":"b"}`} {
		if rep := check(t, `{"traceEvents":[`+event+`]}`); rep.Errors != 1 {
			t.Errorf("%s, another program's: %v", what, rep.Problems)
		}
	}
}

func TestNotATrace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "1:0: the file ends where { or [ of a Chrome trace is expected"},
		{"{}", "no traceEvents"},
		{"[{\"ph\":\"X\"", "1:10: the file ends where , or } is expected"},
		{"[1]", "{ of an event expected"},
		{"[]x", "more text after"},
		{"{\"traceEvents\":[{\"a\x01", "control character"},
		{`{"a":` + strings.Repeat("[", 100), "nested more than"},
	} {
		_, err := Check(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(
		`{"otherData":{"schema":"simccl/1"},"traceEvents":[{"ph":"X","pid":1,"tid":2,"ts":1.5,"dur":5,"name":"a","args":{"k":[1,{"b":null}]}}]}`))
	f.Add([]byte(`[{"ph":"b","id":3,"ts":1e3,"x":ncclFloat32},{}]`))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := Check(bytes.NewReader(data))
		if err == nil && rep == nil {
			t.Fatal("neither a report nor an error")
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	var out bytes.Buffer
	w := chrome.New(&out, chrome.Options{})
	id := w.Track(trace.Track{Process: 1000000, Thread: 10000})
	for i := range 100000 {
		w.Emit(&trace.Event{Track: id, Start: units.Time(i) * units.Microsecond, Dur: units.Microsecond,
			Cat: "NET", Name: "SendWait",
			Args: []trace.Arg{trace.Int("Step", int64(i)), trace.Int("bytes", 131072)}})
	}
	_ = w.Close()
	b.SetBytes(int64(out.Len()))
	for b.Loop() {
		if rep, err := Check(bytes.NewReader(out.Bytes())); err != nil || rep.Errors > 0 {
			b.Fatal(err)
		}
	}
}
