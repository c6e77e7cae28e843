package compare

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
)

// clean fails where text for people holds a control character, but for newlines.
func clean(t *testing.T, text []byte) {
	t.Helper()
	if !utf8.Valid(text) {
		t.Fatalf("text is no UTF-8: %q", text)
	}
	for _, r := range string(text) {
		if termtext.Control(r) && r != '\n' {
			t.Fatalf("text holds %U: %q", r, text)
		}
	}
}

// FuzzReaders reads any two files as traces, every way: nothing panics, text has
// no control characters, JSON can be written.
func FuzzReaders(f *testing.F) {
	f.Add([]byte(
		`{"otherData":{"schema":"simccl/1"},"traceEvents":[{"ph":"X","pid":1,"tid":2,"ts":1.5,"dur":5,"name":"a","cat":"c","args":{"k":[1,{"b":null}]}},{"ph":"s","id":1,"ts":1,"pid":1,"tid":2,"name":"f","cat":"c"},{"ph":"f","id":1,"ts":3,"pid":1,"tid":2,"name":"f","cat":"c","bp":"e"}]}`), []byte(`[{"ph":"B","ts":1,"pid":1,"tid":1,"name":"x"},{"ph":"E","ts":2,"pid":1,"tid":1}]`))
	f.Add([]byte(`[{"ph":"b","id":3,"ts":1e3,"x":ncclFloat32},{"ph":"e","id":3,"ts":-9e18}]`),
		[]byte(`[{"ph":"M","name":"process_name","pid":9223372036854775807,"args":{"name":5}},{"ph":"C","ts":0,"name":"c","args":{"v":1e308}}]`))
	f.Add([]byte(
		`{"otherData":{"part":{"rank":0,"of":2},"epoch_unix_ns":"5"},"traceEvents":[{"ph":"C","ts":9e12,"name":"c","args":{"v":1e999}},{"ph":"X","ts":9e12,"dur":9e12,"name":"\u009b"}]}`),
		[]byte(`{"otherData":{"part":{"rank":1,"of":2},"epoch_unix_ns":"-9223372036854775808"},"traceEvents":[{"ph":"X","ts":1,"dur":1,"cat":"GPU","name":"\u202e\n"},{"ph":"s","ts":1,"id":7}]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		kept := func() *trace.Budget { return trace.NewBudget(8 << 20) }
		var out bytes.Buffer
		if s, err := Count(bytes.NewReader(a), kept()); err == nil {
			if _, err := json.Marshal(s); err != nil {
				t.Fatalf("stats: %v", err)
			}
			_ = s.Text(&out)
		}
		if d, err := Diff(bytes.NewReader(a), bytes.NewReader(b), 0, kept()); err == nil {
			if _, err := json.Marshal(d); err != nil {
				t.Fatalf("differences: %v", err)
			}
			_ = d.Text(&out, [2]string{"a", "b"})
		}
		clean(t, out.Bytes())
		var merged bytes.Buffer
		w := chrome.New(&merged, chrome.Options{})
		if _, err := Merge(w, []string{"a", "b"}, []io.Reader{bytes.NewReader(a), bytes.NewReader(b)},
			kept()); err == nil {
			if err := w.Close(); err == nil && !json.Valid(merged.Bytes()) {
				t.Fatalf("the merged trace is no JSON: %q", merged.Bytes())
			}
		} else {
			_ = w.Close()
		}
		join(a, b, kept())
	})
}

// join joins two files where they are parts of one run.
func join(a, b []byte, kept *trace.Budget) {
	one, errOne := chrome.Head(bytes.NewReader(a))
	two, errTwo := chrome.Head(bytes.NewReader(b))
	if errOne != nil || errTwo != nil {
		return
	}
	heads := []*chrome.Info{one, two}
	if ok, err := Parts(heads); ok && err == nil {
		w := new(trace.Memory)
		_, _ = Join(w, heads, []io.Reader{bytes.NewReader(a), bytes.NewReader(b)}, kept)
		_ = w.Close()
	}
}
