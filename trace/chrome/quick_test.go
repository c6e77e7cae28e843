package chrome

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// outcome is all that a reader says of a file.
type outcome struct {
	info   *Info
	events []string
	err    string
}

// readAs reads a file, with or without the quick way.
func readAs(data []byte, fast bool, size int) outcome {
	p := &parser{info: &Info{}, base: math.MinInt64, window: size}
	if fast {
		p.quick = new(quick)
	}
	var o outcome
	p.each = func(e *Event) error {
		o.events = append(o.events, fmt.Sprintf("%#v", *e))
		return nil
	}
	var in io.Reader = bytes.NewReader(data)
	if size == 16 {
		in = iotest.OneByteReader(in)
	}
	src, err := newSource(in)
	if err == nil {
		o.info, err = parse(src, p)
	}
	if err != nil {
		o.err = err.Error()
	}
	return o
}

// sameReading fails where the two ways differ in events, verdict or place.
func sameReading(t *testing.T, data []byte) {
	t.Helper()
	want := readAs(data, false, 0)
	for _, size := range []int{0, 16, 100, 300} {
		got := readAs(data, true, size)
		if got.err != want.err || !reflect.DeepEqual(got.info, want.info) {
			t.Fatalf("%.300q\nquick:  %s %+v\ntokens: %s %+v", data, got.err, got.info, want.err, want.info)
		}
		for i := range min(len(got.events), len(want.events)) {
			if got.events[i] != want.events[i] {
				t.Fatalf("%.300q\nevent %d\nquick:  %s\ntokens: %s", data, i, got.events[i], want.events[i])
			}
		}
		if len(got.events) != len(want.events) {
			t.Fatalf("%.300q: %d events, want %d", data, len(got.events), len(want.events))
		}
	}
}

// spellings are events that try the border between the quick way and tokens.
var spellings = []string{
	`{"ph":"X","pid":1,"tid":2,"ts":1.5,"dur":5,"name":"a","cat":"c","args":{"k":1,"f":2.5,"s":"x","t":true,"n":null}}`,
	`{"ph":"X","pid":-0,"tid":007,"ts":-1.5e3,"dur":1e-3,"name":"a\u0041","args":{}}`,
	`{"ph":"X","pid":"word","tid":1.0,"ts":"1","dur":-,"name":"ä\"b","args":{"a":[1,{"b":2}],"c":{"d":[]}}}`,
	"{ \"ph\" : \"i\" ,\n\t\"ts\" : 1 ,\r\n" +
		" \"args\" : { \"a\" : -0.0 , \"b\":123456789012345678901234567890 } }",
	`{"ph":"i","ts":99999999999999999999,"args":{"a":0.1,"b":365.20093499999996,"c":1e999,"d":-12345678901234567}}`,
	`{"ph":"i","ts":1,"name":ncclFloat32,"args":{"a":0x1}}`, `{"ph":"i","ts":1,}`, `{}`,
	`{"ph":"i","args":{"a":1,}}`,
	`{"ph":"i","ts":1,"args":3,"args":{"a":1},"args":{"b":2}}`,
	`{"ph":"","ph":"ab","ph":"i","ts":1,"id":5,"id":"0x7","bp":"e"}`,
	`{"ph":"i" "ts":1}`, `{"ph":"i","ts":1 2}`, `{"ph":"i","na` + "\n" + `me":1}`, `{"ph":"i","name":"` +
		"\x01" + `"}`, `{"ph":"i","name":"\q"}`,
	`{"ph":"i","ts":12345678901.123456789}`, `{"ph":"i","ts":1700000000000000.5}`, `{"ph":"i","ts":.5}`,
	`{"ph":"i","ts":1.}`, `{"ph":"i","args":{"a":1.2.3,"b":--1}}`,
	`{"ph":"i","name":"` + strings.Repeat("n", 1500) + `"}`,
	`{"ph":"M","ts":7,"name":"process_name","args":{"name":"p"}}`,
}

// TestQuickReadsAsTokens: both ways read the same events, in any combination, and
// fail at the same place with the same words.
func TestQuickReadsAsTokens(t *testing.T) {
	first := spellings
	if testing.Short() {
		first = first[:len(first)/8+1]
	}
	for _, a := range first {
		for _, b := range spellings {
			for _, list := range []string{"[%s,%s]", "[%s ,\n%s\n,]", "[%s%s", "[\n%s,\n%s,"} {
				text := fmt.Sprintf(list, a, b)
				sameReading(t, []byte(text))
				sameReading(t, []byte(`{"otherData":{"schema":"simccl/1"},"traceEvents":`+text+`,"more":1}`))
			}
		}
	}
	whole := []byte(fmt.Sprintf("[%s,\n%s]", spellings[0], spellings[3]))
	for n := range whole {
		sameReading(t, whole[:n])
	}
	story, err := os.ReadFile("testdata/story.json")
	if err != nil {
		t.Fatal(err)
	}
	sameReading(t, story)
	sameReading(t, zipped(t, string(story)))
}

// TestQuickReadsBeyondItsWindow: events that are cut by the window's end, and one
// that is larger than it.
func TestQuickReadsBeyondItsWindow(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for i := range 6000 {
		if i == 3000 {
			b.WriteString(`{"ph":"i","ts":1,"args":{"a":"x"` +
				strings.Repeat(`,"b":"`+strings.Repeat("y", 900)+`"`, 400) + "}},\n")
		}
		fmt.Fprintf(&b,
			`{"ph":"X","pid":%d,"tid":%d,"ts":%d.%03d,"dur":1.000,"name":"event %d","args":{"n":%d}},`+"\n",
			i%7, i%11, i, i%1000, i%300, i)
	}
	b.WriteString(`{"ph":"E"}]`)
	sameReading(t, []byte(b.String()))
}

// TestQuickReadsOurTraces: nothing of a trace of ours is left to the tokens.
func TestQuickReadsOurTraces(t *testing.T) {
	text := render(t, Options{}, noise(500))
	p := &parser{info: &Info{}, base: math.MinInt64, quick: new(quick), each: func(*Event) error {
		return nil
	}}
	p.lex = newLexer(strings.NewReader(text[strings.Index(text, "[\n")+1:]), 0)
	n := 0
	for ; p.quickEvent(n); n++ {
	}
	if want := strings.Count(text, `{"ph":`); n != want || n < 500 {
		t.Errorf("%d of %d events", n, want)
	}
}

// FuzzQuick reads any file both ways.
func FuzzQuick(f *testing.F) {
	for _, s := range spellings {
		f.Add([]byte("[" + s + "," + spellings[0] + "]"))
		f.Add([]byte(`{"traceEvents":[` + spellings[0] + "," + s + "]}"))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameReading(t, data) })
}

// BenchmarkReader reads a trace of ours.
func BenchmarkReader(b *testing.B) {
	var text bytes.Buffer
	w := New(&text, Options{})
	noise(100_000)(w)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("json", func(b *testing.B) { readBench(b, text.Bytes(), int64(text.Len())) })
	b.Run("gz", func(b *testing.B) { readBench(b, zipped(b, text.String()), int64(text.Len())) })
}

func readBench(b *testing.B, data []byte, text int64) {
	b.SetBytes(text)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if _, err := Read(bytes.NewReader(data), func(*Event) error { n++; return nil }); err != nil ||
			n == 0 {
			b.Fatal(n, err)
		}
	}
}
