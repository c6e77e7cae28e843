package chrome

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/protowire"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/perfetto"
	"github.com/simccl/simccl/units"
)

// packets writes a trace in Perfetto's format.
func packets(t testing.TB, name string, opt Options, fill func(trace.Sink)) []byte {
	t.Helper()
	var out memoryFile
	w := To(&out, name, opt)
	fill(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type memoryFile struct{ bytes.Buffer }

func (m *memoryFile) Finish(err error) error { return err }

// mixedStory is story, and what needs care: strings that repeat nowhere, numbers of
// all kinds, slices that begin where others end.
func mixedStory(s trace.Sink) {
	story(s)
	id := s.Track(trace.Track{Process: 77, ProcessName: "odd \xff", Labels: "l", Thread: 3,
		ThreadName: "lane \u2192", ThreadSort: -4, ProcessSort: -2})
	for i := range 40 {
		at := units.Time(i) * units.Microsecond
		s.Emit(&trace.Event{Track: id, Start: at, Dur: units.Microsecond, Cat: "c",
			Name: fmt.Sprint("slice ", i%3),
			Args: []trace.Arg{trace.Int("i", int64(-i)), trace.Num("f", float64(i)/3),
				trace.Str("s", strings.Repeat("x", i*20))}})
		s.Emit(&trace.Event{Track: id, Start: at, Dur: units.Microsecond / 2, Name: "inner"})
		s.Emit(&trace.Event{Phase: trace.Counter, Track: id, Start: at, Name: "load",
			Args: []trace.Arg{trace.Num("GB/s", float64(i)/7)}})
	}
}

// busy emits n slices on tracks where none overlaps, ends in order and starts not.
func busy(n int) func(trace.Sink) {
	return func(s trace.Sink) {
		var ids []trace.TrackID
		for i := range 8 {
			ids = append(ids, s.Track(trace.Track{Process: 5, Thread: int64(i + 6)}))
		}
		for i := range n {
			end := units.Time(i) * units.Microsecond
			s.Emit(&trace.Event{Track: ids[i%8], Start: max(0, end-units.Time(i%7+1)*units.Microsecond),
				Dur: units.Time(i%7+1) * units.Microsecond, Cat: "NET",
				Name: "SendWait", Args: []trace.Arg{trace.Int("Step", int64(i))}})
		}
	}
}

// facts lists what a file's events say, without their lines and in no order.
func facts(t testing.TB, data []byte) (list []string, info *Info) {
	t.Helper()
	info, err := Read(bytes.NewReader(data), func(e *Event) error {
		c := *e
		c.Line = 0
		if c.Phase == 'C' || c.Phase == 'M' && strings.HasPrefix(c.Name, "process") {
			c.TID = 0
		}
		c.Bind, c.Tint = "", trace.Plain // Perfetto's format has no colours
		c.Args = slices.Clone(c.Args)
		for i := range c.Args { // JSON has one kind of number
			if a := &c.Args[i]; a.Kind == trace.IntArg {
				a.Kind, a.Num, a.Int = trace.FloatArg, float64(a.Int), 0
			}
		}
		list = append(list, fmt.Sprintf("%+v", c))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list, info
}

// TestPerfettoSaysTheSame: both formats hold the same events and say the same of the
// trace, whether the events were spilled or not.
func TestPerfettoSaysTheSame(t *testing.T) {
	meta := Meta{Source: "sim", Version: "v0", Seed: 7, Env: []trace.Arg{trace.Str("NCCL_ALGO", "Ring")}}
	for name, fill := range map[string]func(trace.Sink){
		"story": story, "mixed": mixedStory, "busy": busy(3000)} {
		want, wantInfo := facts(t, []byte(render(t, Options{Meta: meta}, fill)))
		for _, batch := range []int{0, 3000} {
			for _, file := range []string{"t.pftrace", "t.pftrace.gz"} {
				got, info := facts(t, packets(t, file, Options{Meta: meta, BatchBytes: batch}, fill))
				if !slices.Equal(got, want) {
					t.Fatalf("%s in %s, batches of %d: %d events, want %d\n%s\n%s", name, file, batch,
						len(got), len(want), firstOf(got, want), firstOf(want, got))
				}
				info.Compressed = false
				if fmt.Sprintf("%+v", info) != fmt.Sprintf("%+v", wantInfo) {
					t.Errorf("%s in %s says of itself\n%+v, want\n%+v", name, file, info, wantInfo)
				}
			}
		}
	}
}

// firstOf is the first of a list that another does not have.
func firstOf(a, b []string) string {
	for i := range a {
		if !slices.Contains(b, a[i]) {
			return a[i]
		}
	}
	return "none"
}

// message is a protobuf message by field numbers, read without knowledge of any.
type message map[uint64][]any

// decode reads a message: numbers as uint64, the rest as bytes.
func decode(t *testing.T, b []byte) message {
	t.Helper()
	m := message{}
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatalf("no tag in %x", b)
		}
		b = b[n:]
		var v any
		switch tag & 7 {
		case 0:
			var x uint64
			x, n = binary.Uvarint(b)
			v, b = x, b[n:]
		case 1:
			v, b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			v, b = b[n:n+int(size)], b[n+int(size):]
		default:
			t.Fatalf("wire type %d", tag&7)
		}
		m[tag>>3] = append(m[tag>>3], v)
	}
	return m
}

func (m message) number(field uint64) uint64 {
	if len(m[field]) == 0 {
		return 0
	}
	return m[field][0].(uint64)
}

func (m message) in(t *testing.T, field uint64) message {
	t.Helper()
	if len(m[field]) != 1 {
		t.Fatalf("%d values of field %d", len(m[field]), field)
	}
	return decode(t, m[field][0].([]byte))
}

// annotations checks that the annotations of an event name keys and values that are interned.
func annotations(t *testing.T, packet int, event message, keys, values uint64) {
	t.Helper()
	for _, a := range event[4] { // debug_annotations
		note := decode(t, a.([]byte))
		if id := note.number(1); len(note[10]) == 0 && (id < 1 || id > keys) || note.number(17) > values {
			t.Fatalf("packet %d: annotation %v", packet, note)
		}
	}
}

// TestPerfettoFollowsTheSchema reads a trace by the field numbers of the published
// schema, as written there and not as the writer names them (google/perfetto at
// ec5d16b14b: protos/perfetto/trace/trace_packet.proto, track_event/*.proto,
// interned_data/interned_data.proto).
func TestPerfettoFollowsTheSchema(t *testing.T) {
	var names, keys, values []string
	texts := func(list []any) (out []string) {
		for i, b := range list {
			e := decode(t, b.([]byte))
			if e.number(1) != uint64(i+1) {
				t.Fatalf("iid %d in place %d", e.number(1), i)
			}
			out = append(out, string(e[2][0].([]byte)))
		}
		return out
	}
	tracks, depth := map[uint64]message{}, map[uint64]int{}
	last, counts := uint64(0), map[string]int{}
	for i, b := range decode(t, packets(t, "t.pftrace", Options{}, mixedStory))[1] { // Trace.packet
		p := decode(t, b.([]byte))
		switch {
		case i == 0:
			if p.number(13) != 1 || p.number(10) != 1 { // SEQ_INCREMENTAL_STATE_CLEARED of sequence 1
				t.Fatalf("first packet: %v", p)
			}
			data := p.in(t, 12) // interned_data
			names, keys, values = texts(data[2]), texts(data[3]), texts(data[29])
		case len(p[60]) > 0: // track_descriptor
			d := p.in(t, 60)
			tracks[d.number(1)] = d
		case len(p[11]) > 0: // track_event
			e := p.in(t, 11)
			// SEQ_NEEDS_INCREMENTAL_STATE, timestamp
			if p.number(13) != 2 || p.number(10) != 1 || p.number(8) < last {
				t.Fatalf("packet %d: %v after %d", i, p, last)
			}
			last = p.number(8)
			track := tracks[e.number(11)] // track_uuid
			if track == nil || track.number(5) != 0 && tracks[track.number(5)] == nil {
				t.Fatalf("packet %d: no track %d, or no parent", i, e.number(11))
			}
			annotations(t, i, e, uint64(len(keys)), uint64(len(values)))
			switch e.number(9) { // type
			case 1:
				depth[e.number(11)]++
				counts["begin "+names[e.number(10)-1]]++
			case 2:
				if depth[e.number(11)]--; depth[e.number(11)] < 0 {
					t.Fatalf("packet %d ends what has not begun", i)
				}
				counts["end"]++
			case 4:
				// CounterDescriptor; counter_value or double_counter_value
				if len(track[8]) != 1 || len(e[30])+len(e[44]) != 1 {
					t.Fatalf("packet %d: counter %v on %v", i, e, track)
				}
				counts["counter"]++
			case 0:
				counts[fmt.Sprintf("legacy %c", rune(e.in(t, 6).number(2)))]++
			}
		}
	}
	for id, n := range depth {
		if n != 0 {
			t.Errorf("%d slices of track %d do not end", n, id)
		}
	}
	if counts["begin inner"] != 40 || counts["counter"] < 40 || counts["legacy s"] != counts["legacy f"] ||
		counts["legacy s"] == 0 {
		t.Errorf("events: %v", counts)
	}
}

// TestWorkersChangeNothing: the bytes of a file do not depend on how many
// goroutines make it ready.
func TestWorkersChangeNothing(t *testing.T) {
	for _, name := range []string{"t.json", "t.json.gz", "t.pftrace", "t.pftrace.gz"} {
		var want []byte
		for _, n := range []int{1, 2, 8} {
			old := runtime.GOMAXPROCS(n)
			got := packets(t, name, Options{BatchBytes: 1 << 16}, noise(20000))
			runtime.GOMAXPROCS(old)
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: other bytes with %d processors", name, n)
			}
		}
	}
}

// TestPerfettoCutAnywhere: a file that is cut is refused with the packet's place,
// unless the cut is between packets.
func TestPerfettoCutAnywhere(t *testing.T) {
	whole := packets(t, "t.pftrace", Options{}, story)
	bad := 0
	for n := 3; n < len(whole); n++ {
		_, err := readAll(whole[:n])
		var at *perfetto.PacketError
		if err != nil && !errors.As(err, &at) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if err != nil {
			bad++
		}
	}
	if bad < len(whole)/2 {
		t.Errorf("%d of %d cuts are refused", bad, len(whole))
	}
	if _, err := readAll(append(bytes.Clone(whole), "junk"...)); err == nil {
		t.Error("junk at the end was accepted")
	}
	if err := CheckPath("x.pftrace.gz", Options{NCCLStyle: true}); err == nil {
		t.Error("NCCL's layout in Perfetto's format was accepted")
	}
}

// FuzzPerfetto reads any bytes as packets: nothing panics, and what is read can be
// written.
func FuzzPerfetto(f *testing.F) {
	f.Add(packets(f, "t.pftrace", Options{}, story))
	f.Add(packets(f, "t.pftrace", Options{}, mixedStory)[:3000])
	// A counter whose name is "n" and whose value is no number, at a time beyond 63 bits.
	event := protowire.AppendNumber(protowire.AppendBytes(nil, 23, "n"), 9, 4)
	event = protowire.AppendDouble(protowire.AppendNumber(event, 11, 5), 44, math.NaN())
	f.Add(protowire.AppendBytes(nil, 1, protowire.AppendBytes(protowire.AppendNumber(nil, 8, math.MaxUint64),
		11, event)))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &parser{info: &Info{}, base: math.MinInt64, quick: new(quick)}
		n := 0
		p.each = func(e *Event) error {
			if n++; e.HasDur && e.Dur < 0 || len(e.Args) > 2*maxArgs {
				t.Fatalf("%+v", e)
			}
			return nil
		}
		p.lex = newLexer(bytes.NewReader(data), 0)
		info, err := p.proto(p.lex.in)
		if err == nil && info.Events != n {
			t.Fatalf("%d events given, %d counted", n, info.Events)
		}
	})
}

// BenchmarkFile writes a trace, at the same work for each kind of file: MB/s are of
// JSON text.
func BenchmarkFile(b *testing.B) {
	size := int64(len(packets(b, "t.json", Options{}, func(s trace.Sink) { steps(s, 200_000) })))
	for _, name := range []string{"t.json", "t.json.gz", "t.pftrace"} {
		b.Run(strings.TrimPrefix(name, "t."), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				packets(b, name, Options{}, func(s trace.Sink) { steps(s, 200_000) })
			}
		})
	}
}
