package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
)

// costly are traces of n events that a reader must keep something of.
func costly(n int) map[string]string {
	out := map[string]string{}
	for name, event := range map[string]string{
		"slices":    `{"ph":"X","pid":1,"tid":2,"ts":%[1]d,"dur":1,"name":"n%[1]d","cat":"c"}`,
		"begins":    `{"ph":"B","pid":1,"tid":2,"ts":%[1]d,"name":"n"}`,
		"async":     `{"ph":"b","pid":1,"tid":2,"ts":%[1]d,"id":%[1]d,"name":"n"}`,
		"counters":  `{"ph":"C","pid":1,"ts":%[1]d,"name":"n%[1]d","args":{"v":1}}`,
		"processes": `{"ph":"M","pid":%[1]d,"name":"process_name","args":{"name":"p%[1]d"}}`,
		"tracks":    `{"ph":"i","pid":%[1]d,"tid":%[1]d,"ts":%[1]d,"name":"n"}`,
		"arrows":    `{"ph":"s","pid":1,"tid":2,"ts":%[1]d,"id":%[1]d,"name":"n"}`,
	} {
		var b strings.Builder
		b.WriteString(`{"otherData":{"part":{"rank":0,"of":2}},"traceEvents":[`)
		for i := range n {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, event, i)
		}
		out[name] = b.String() + "]}"
	}
	return out
}

// TestReadersKeepWithinTheirBudget: each reader ends with the bound on what it
// would have to keep, and reads what it need not keep.
func TestReadersKeepWithinTheirBudget(t *testing.T) {
	readers := map[string]func(text string, kept *trace.Budget) error{
		"stats": func(text string, kept *trace.Budget) error {
			_, err := Count(strings.NewReader(text), kept)
			return err
		},
		"diff": func(text string, kept *trace.Budget) error {
			_, err := Diff(strings.NewReader(text), strings.NewReader("[]"), 0, kept)
			return err
		},
		"merge": func(text string, kept *trace.Budget) error {
			_, err := Merge(trace.Discard, []string{"a"}, []io.Reader{strings.NewReader(text)}, kept)
			return err
		},
		"join": func(text string, kept *trace.Budget) error {
			_, err := Join(trace.Discard, []*chrome.Info{{Part: &chrome.Part{Rank: 0, Of: 2}}},
				[]io.Reader{strings.NewReader(text)}, kept)
			return err
		},
	}
	bounded := map[string]string{
		"stats": "slices begins async counters processes",
		"diff":  "slices begins async processes",
		"merge": "begins processes tracks arrows",
		"join":  "begins processes tracks arrows counters",
	}
	const n = 5000
	for what, text := range costly(n) {
		for name, read := range readers {
			err := read(text, trace.NewBudget(64<<10))
			var limit *trace.LimitError
			if want := strings.Contains(bounded[name], what); want != errors.As(err, &limit) || !want &&
				err != nil {
				t.Errorf("%s of %d %s in 64 KiB: %v", name, n, what, err)
			}
			if err := read(text, new(trace.Budget)); err != nil {
				t.Errorf("%s of %d %s: %v", name, n, what, err)
			}
		}
	}
}

// TestTimelessEventsAreCounted: what has no usable time is not summed up as 0.
func TestTimelessEventsAreCounted(t *testing.T) {
	const good = `[{"ph":"X","pid":1,"tid":2,"ts":1,"dur":2,"name":"a"}]`
	for _, bad := range []string{`"ts":NaN,"dur":1`, `"ts":1e308,"dur":1`, `"ts":1,"dur":1e308`,
		`"ts":"1","dur":1`} {
		text := "[" + good[1:len(good)-1] + ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"name\":\"b\"," + bad +
			"}]"
		s, err := Count(strings.NewReader(text), new(trace.Budget))
		if err != nil || s.Timeless != 1 || !strings.HasPrefix(s.FirstTimeless, "line 2: ") ||
			len(s.Kinds) != 1 {
			t.Errorf("%s: %v, %+v", bad, err, s)
		}
		d, err := Diff(strings.NewReader(good), strings.NewReader(text), 0, new(trace.Budget))
		if err != nil || d.Timeless != [2]int{0, 1} || d.Equal() || d.Matched != 1 {
			t.Errorf("%s: %v, %+v", bad, err, d)
		}
	}
}

// TestSumsBeyondTimeStaySums: lengths that picoseconds cannot sum up are summed
// up all the same, and a counter beyond what a number holds is none.
func TestSumsBeyondTimeStaySums(t *testing.T) {
	text := `[{"ph":"X","pid":1,"tid":2,"ts":0,"dur":8e12,"name":"a"},{"ph":"X","pid":1,"tid":3,"ts":0,"dur":8e12,"name":"a"},{"ph":"C","pid":1,"ts":0,"name":"c","args":{"v":1e999}}]`
	s, err := Count(strings.NewReader(text), new(trace.Budget))
	if err != nil || s.Kinds[0].Total != 1.6e13 || len(s.Links) != 0 {
		t.Fatalf("%v, %+v", err, s)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	w := chrome.New(&out, chrome.Options{})
	if _, err := Merge(w, []string{"a"}, []io.Reader{strings.NewReader(text)}, new(trace.Budget)); err !=
		nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("%v, %s", err, &out)
	}
}

// TestManySizesAreComparedInTime: slices of 200,000 sizes took a list that was
// shifted for each.
func TestManySizesAreComparedInTime(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for i := range 200_000 {
		fmt.Fprintf(&b,
			`{"ph":"X","pid":1,"tid":2,"ts":%d,"dur":1,"name":"n","cat":"NET","args":{"bytes":%d}},`, i,
			1_000_000-i)
	}
	text := b.String()
	d, err := Diff(strings.NewReader(text), strings.NewReader(text), 0, new(trace.Budget))
	if err != nil || !d.Equal() || d.Matched != 200_000 {
		t.Errorf("%v", err)
	}
}
