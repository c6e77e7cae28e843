package sim_test

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/simccl/simccl/trace"
)

// The text form has one line per track and event, in goldens of whole traces:
//
//	track 1000003/10000 "rank 3" "node0" "ch 00 send · step 0" 3 10000
//	slice 1000003/10000 6500000 10833000 "NET" "SendWait" Step=0 bytes=131072 transport="NET/IB"
//	flow> 1000003/10000 6501000 "flow" "xfer" 1
//	flow< 1000011/10064 18099000 "flow" "xfer" 1
//	count 3000000/1 6500000 "" "leaf0→spine1 GB/s" GB/s=48.5
//	point 1000003/200 0 "sim" "tuner" chosen="RING/LL"
//
// Places are pid/tid, times picoseconds, strings are quoted as in Go. Floats
// are distinguished from integers by a point, an exponent or a word.

var phaseWords = [...]string{trace.Slice: "slice", trace.Instant: "point", trace.FlowStart: "flow>",
	trace.FlowEnd: "flow<", trace.Counter: "count"}

// textSink is a Sink that prints the text form.
type textSink struct {
	w      *bufio.Writer
	known  map[[2]int64]trace.TrackID
	tracks []trace.Track
	buf    []byte
	err    error
}

// newText returns a sink on w.
func newText(w io.Writer) *textSink {
	return &textSink{w: bufio.NewWriter(w), known: make(map[[2]int64]trace.TrackID)}
}

// Track registers a lane and prints its line.
func (x *textSink) Track(t trace.Track) trace.TrackID {
	k := [2]int64{t.Process, t.Thread}
	if id, ok := x.known[k]; ok {
		return id
	}
	id := trace.TrackID(len(x.tracks))
	x.tracks = append(x.tracks, t)
	x.known[k] = id
	fmt.Fprintf(x.w, "track %d/%d %q %q %q %d %d\n", t.Process, t.Thread, t.ProcessName, t.Labels,
		t.ThreadName, t.ProcessSort, t.ThreadSort)
	return id
}

// Emit prints one event.
func (x *textSink) Emit(e *trace.Event) {
	t := &x.tracks[e.Track]
	b := append(append(x.buf[:0], phaseWords[e.Phase]...), ' ')
	b = append(strconv.AppendInt(b, t.Process, 10), '/')
	b = append(strconv.AppendInt(b, t.Thread, 10), ' ')
	b = append(strconv.AppendInt(b, int64(e.Start), 10), ' ')
	if e.Phase == trace.Slice {
		b = append(strconv.AppendInt(b, int64(e.Dur), 10), ' ')
	}
	b = append(strconv.AppendQuote(b, e.Cat), ' ')
	b = strconv.AppendQuote(b, e.Name)
	if e.Phase == trace.FlowStart || e.Phase == trace.FlowEnd {
		b = strconv.AppendInt(append(b, ' '), e.ID, 10)
	}
	for i := range e.Args {
		a := &e.Args[i]
		b = append(b, ' ')
		if plainKey(a.Key) {
			b = append(b, a.Key...)
		} else {
			b = strconv.AppendQuote(b, a.Key)
		}
		b = append(b, '=')
		switch a.Kind {
		case trace.StringArg:
			b = strconv.AppendQuote(b, a.Str)
		case trace.IntArg:
			b = strconv.AppendInt(b, a.Int, 10)
		case trace.FloatArg:
			from := len(b)
			b = strconv.AppendFloat(b, a.Num, 'g', -1, 64)
			if !strings.ContainsAny(string(b[from:]), ".eNI") {
				b = append(b, ".0"...)
			}
		}
	}
	x.buf = append(b, '\n')
	if _, err := x.w.Write(x.buf); err != nil && x.err == nil {
		x.err = err
	}
}

func plainKey(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '=' || c == '"' || c >= 0x7f {
			return false
		}
	}
	return s != ""
}

// Close flushes and returns the first error.
func (x *textSink) Close() error {
	if err := x.w.Flush(); x.err == nil {
		x.err = err
	}
	return x.err
}
