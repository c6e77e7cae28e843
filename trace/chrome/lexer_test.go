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

// readAs reads a file with a window of size bytes of the text; 0: the usual one, 16: byte by byte.
func readAs(data []byte, size int) outcome {
	p := &parser{info: &Info{}, base: math.MinInt64, window: size}
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

// sameReading fails where windows of some sizes differ in events, verdict or place.
func sameReading(t *testing.T, data []byte) {
	t.Helper()
	want := readAs(data, 0)
	for _, size := range []int{16, 100, 300} {
		got := readAs(data, size)
		if got.err != want.err || !reflect.DeepEqual(got.info, want.info) {
			t.Fatalf("%.300q\nsmall: %s %+v\nlarge: %s %+v", data, got.err, got.info, want.err, want.info)
		}
		for i := range min(len(got.events), len(want.events)) {
			if got.events[i] != want.events[i] {
				t.Fatalf("%.300q\nevent %d\nsmall: %s\nlarge: %s", data, i, got.events[i],
					want.events[i])
			}
		}
		if len(got.events) != len(want.events) {
			t.Fatalf("%.300q: %d events, want %d", data, len(got.events), len(want.events))
		}
	}
}

// spellings are events with what a window may cut, and with what is no JSON.
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

// TestWindowCutsNothing: any window reads the same events, in any combination, and
// fails at the same place with the same words.
func TestWindowCutsNothing(t *testing.T) {
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

// TestEventsLargerThanTheWindow: events that are cut by the window's end, and one
// that is larger than it.
func TestEventsLargerThanTheWindow(t *testing.T) {
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

// FuzzWindows reads any file through windows of several sizes.
func FuzzWindows(f *testing.F) {
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
