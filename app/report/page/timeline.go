package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// activity is the kind of work in an interval. Where several steps are in flight, the highest kind is drawn.
type activity uint8

const (
	nothing activity = iota
	waits
	calls
	kernels
	flushes
	reads
	sends
	activities
)

// look is how an activity is drawn: waits are hatched, so that work is seen without
// its colour too.
var look = [activities]struct{ class, name string }{waits: {"wait", "waiting (hatched)"},
	calls: {"kolive", "call, launch"}, kernels: {"kpurple", "kernel"},
	flushes: {"kteal", "flush"}, reads: {"korange", "receive: the kernel reads"},
	sends: {"kblue", "on the wire"}}

// meaning is what a name of a trace means: the activity and plain words.
var meaning = map[string]struct {
	is    activity
	words string
}{
	"SendWait": {sends, "on the wire"}, "RecvWait": {waits, "waiting for data"},
	"SendGpuWait":   {waits, "waiting for the kernel to fill the slot"},
	"SendPeerWait":  {waits, "waiting for the peer's buffer"},
	"RecvFlushWait": {flushes, "flush of GPU memory"}, "RecvGpuWait": {reads, "the kernel reads what came"},
	"KernelCh": {kernels, "kernel"}, "kernel": {kernels, "kernel before, between and after its steps"},
	"launch": {calls, "launch"},
}

func activityOf(name string) activity {
	if m, ok := meaning[name]; ok {
		return m.is
	}
	return calls
}

const (
	// connections of a rank over the network that are drawn, the busiest, and as many within the node
	rowsShown    = 12
	rowsListed   = 120  // and that the table has
	timeColumns  = 1200 // of the drawing, each of one activity
	columnFilled = 0.25 // of a column, for an activity to be drawn
)

// strip is a row of the timeline: a connection, or the tracks of one kind of a rank.
type strip struct {
	process string
	order   [3]int64 // of processes and kinds of rows
	name    string
	steps   int
	bytes   int64
	us      map[string]float64 // by name of the trace
	busy    units.Time         // sending, flushing, reading
	cover   [activities][]float64
}

// strips joins the tracks of a trace to rows: the steps of a connection, the kernels of
// a rank. Those of a rank come with the busiest connection first.
func strips(m *trace.Memory) (out []*strip, end units.Time) {
	if m == nil {
		return nil, 0
	}
	for i := range m.Events {
		if e := &m.Events[i]; e.Phase == trace.Slice {
			end = max(end, e.Start+e.Dur)
		}
	}
	type key struct {
		process int64
		name    string
	}
	rows := map[key]*strip{}
	for i := range m.Events {
		e := &m.Events[i]
		if e.Phase != trace.Slice || e.Cat == "PROXY" || e.Cat == "GROUP" {
			continue
		}
		t := &m.Tracks[e.Track]
		kind, name := kindOf(t, e)
		k := key{t.Process, name}
		s := rows[k]
		if s == nil {
			s = &strip{process: t.ProcessName, order: [3]int64{t.ProcessSort, t.Process, kind}, name: name,
				us: map[string]float64{}}
			rows[k], out = s, append(out, s)
		}
		s.add(e, end)
	}
	slices.SortStableFunc(out, func(a, b *strip) int {
		return cmp.Or(slices.Compare(a.order[:], b.order[:]), cmp.Compare(b.busy, a.busy),
			strings.Compare(a.name, b.name))
	})
	return out, end
}

// Kinds of rows, as they follow each other.
const (
	pathRow = iota
	callRow
	kernelRow
	netRow
	stepRow
)

func kindOf(t *trace.Track, e *trace.Event) (kind int64, name string) {
	switch {
	case t.Process == nccl.CriticalPID:
		return pathRow, "what the end waited for"
	case e.Cat == "GPU":
		return kernelRow, "kernels"
	case e.Cat == "NET" || e.Cat == "P2P_XFER":
		name, _, _ = strings.Cut(t.ThreadName, " · ")
		if e.Cat == "NET" {
			return netRow, name + ", network"
		}
		return stepRow, name
	}
	return callRow, "calls"
}

func (s *strip) add(e *trace.Event, end units.Time) {
	is := activityOf(e.Name)
	if s.us[e.Name] += e.Dur.Micros(); is >= flushes {
		s.busy += e.Dur
	}
	s.steps++
	for _, a := range e.Args {
		if a.Key == "bytes" && is == sends || a.Key == "bytes" && e.Name == "RecvWait" {
			s.bytes += a.Int
		}
	}
	if s.cover[is] == nil {
		s.cover[is] = make([]float64, timeColumns)
	}
	scale := timeColumns / float64(end)
	from, to := float64(e.Start)*scale, float64(e.Start+e.Dur)*scale
	for c := int(from); c < timeColumns && float64(c) < to; c++ {
		s.cover[is][c] += min(to, float64(c+1)) - max(from, float64(c))
	}
}

// at returns the activity that a column of a row shows: the first in order of importance that fills it, or
// else the one with the largest share; nothing below a quarter.
func (s *strip) at(column int) activity {
	most, share := nothing, 0.0
	for a := activities - 1; a > nothing; a-- {
		if s.cover[a] == nil {
			continue
		}
		v := s.cover[a][column]
		if v >= columnFilled {
			return a
		}
		if v > share {
			most, share = a, v
		}
	}
	if share < columnFilled/4 {
		return nothing
	}
	return most
}

// timelineDrawing draws the rows, the busiest connections of each rank only.
func timelineDrawing(m *trace.Memory) markup {
	all, end := strips(m)
	if len(all) == 0 {
		return ""
	}
	const left, w, row = 190.0, 1190.0, 18.0
	x := func(us float64) float64 { return left + (w-left-12)*us/end.Micros() }
	var rows chart.Drawing
	y, process, more := 22.0, "", 0
	var drawn [stepRow + 1]int
	rest := func() {
		if more > 0 {
			rows.Add(`<text class="soft" x="%g" y="%.1f">%d more connections are in the table</text>`, left,
				y+13, more)
			y += row
		}
		drawn, more = [stepRow + 1]int{}, 0
	}
	for _, s := range all {
		if s.process != process {
			rest()
			process = s.process
			rows.Add(`<text class="head" x="4" y="%.1f">%s</text>`, y+15, chart.EscapeXML(s.process))
			y += row + 6
		}
		if drawn[s.order[2]]++; drawn[s.order[2]] > rowsShown {
			more++
			continue
		}
		rows.Add(
			`<text x="%g" y="%.1f" text-anchor="end">%s</text><line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, left-8, y+13, chart.EscapeXML(s.name), left, w-12, y+row-.5, y+row-.5)
		s.draw(&rows, y, row, left, w-12, end)
		y += row
	}
	rest()
	var s chart.Drawing
	s.Add(`<svg class="time" viewBox="0 0 %g %.0f" style="min-width:%gpx" role="img" aria-label="timeline">`,
		w, y+6, w)
	s.Times(end.Micros(), "%g us", 13, 18, y, x)
	s.WriteString(rows.String() + `</svg>`)
	return markup(s.String())
}

// draw draws a row: equal columns that follow each other are one bar.
func (s *strip) draw(to *chart.Drawing, y, row, left, right float64, end units.Time) {
	at := func(c int) float64 { return left + (right-left)*float64(c)/timeColumns }
	us := func(c int) float64 { return end.Micros() * float64(c) / timeColumns }
	for c := 0; c < timeColumns; {
		a, from := s.at(c), c
		for c++; c < timeColumns && s.at(c) == a; c++ {
		}
		if a == nothing {
			continue
		}
		tip := fmt.Sprintf("%s: %s, %.4g to %.4g us", s.name, look[a].name, us(from), us(c))
		if a == waits {
			to.Wait(at(from), y+5, at(c)-at(from), row-11, tip)
			continue
		}
		to.Add(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%g"><title>%s</title></rect>`,
			look[a].class, at(from), y+2, at(c)-at(from), row-5, chart.EscapeXML(tip))
	}
}

// timelineKey names what the drawing shows.
func timelineKey() markup {
	var s chart.Drawing
	for a := activities - 1; a > nothing; a-- {
		s.Add(`<span><i class="%s"></i>%s</span>`, look[a].class, look[a].name)
	}
	s.WriteString(`<span>empty: idle</span>`)
	return markup(s.String())
}

// connections is the table behind the timeline.
func connections(m *trace.Memory) markup {
	all, _ := strips(m)
	var t chart.Drawing
	names := []string{"SendWait", "SendPeerWait", "SendGpuWait", "RecvWait", "RecvFlushWait", "RecvGpuWait"}
	t.WriteString(
		`<table><thead><tr><th class="t">rank</th><th class="t">connection</th><th>steps</th><th>bytes</th>`)
	for _, n := range names {
		t.Add(`<th>%s us</th>`, n)
	}
	t.WriteString("</tr></thead><tbody>\n")
	left := 0
	for i, n := 0, 0; i < len(all); i++ {
		s := all[i]
		if s.order[2] < netRow {
			continue
		}
		if n++; n > rowsListed {
			left++
			continue
		}
		rank, _, _ := strings.Cut(s.process, " · ")
		t.Add(`<tr><td class="t">%s</td><td class="t">%s</td><td>%d</td><td>%s</td>`, text(rank),
			text(s.name), s.steps, grouped(units.Bytes(s.bytes)))
		for _, n := range names {
			if v := s.us[n]; v > 0 {
				t.Add(`<td>%.2f</td>`, v)
			} else {
				t.WriteString(`<td>–</td>`)
			}
		}
		t.WriteString("</tr>\n")
	}
	t.WriteString("</tbody></table>")
	if left > 0 {
		t.Add("<p>and %d more; --trace has them all</p>", left)
	}
	return markup(t.String())
}

// phase is one kind of wait on the critical path.
type phase struct {
	Name, Words, Class string
	Steps              int
	Us, Percent        float64
}

// critical sums the critical path up by what it waits for, the longest first.
func critical(m *trace.Memory) []phase {
	if m == nil {
		return nil
	}
	var out []phase
	total := 0.0
	for i := range m.Events {
		e := &m.Events[i]
		if e.Phase != trace.Slice || m.Tracks[e.Track].Process != nccl.CriticalPID {
			continue
		}
		at := slices.IndexFunc(out, func(p phase) bool { return p.Name == e.Name })
		if at < 0 {
			at = len(out)
			out = append(out, phase{Name: e.Name, Words: meaning[e.Name].words,
				Class: look[activityOf(e.Name)].class})
		}
		out[at].Steps++
		out[at].Us += e.Dur.Micros()
		total += e.Dur.Micros()
	}
	for i := range out {
		out[i].Percent = 100 * out[i].Us / max(total, 1e-9)
	}
	slices.SortStableFunc(out, func(a, b phase) int { return cmp.Compare(b.Us, a.Us) })
	return out
}

// timeline writes the critical path and the first ranks' rows.
func (l *layout) timeline() {
	drawn := timelineDrawing(l.Timeline)
	if drawn == "" {
		return
	}
	l.Section("timeline", "Timeline of one operation of the last size")
	if len(l.critical) > 0 {
		l.Raw("<p>The critical path is what the end waited for: each step began when the one before it was " +
			"done.</p>\n")
		var t chart.Drawing
		t.WriteString(
			`<table><thead><tr><th class="t">on the critical path</th><th class="t">which is</th><th>steps</th><th>us</th><th>share</th><th class="t">of all</th></tr></thead><tbody>` + "\n")
		for _, c := range l.critical {
			t.Add("<tr><td class=\"t\">%s</td><td class=\"t\">%s</td><td>%d</td><td>%.2f</td><td>%.1f "+
				"%%</td><td class=\"t\"><div class=\"bar\"><div class=\"%s\" "+
				"style=\"width:%.1f%%\"></div></div></td></tr>\n",
				text(c.Name), c.Words, c.Steps, c.Us, c.Percent, c.Class, c.Percent)
		}
		t.WriteString("</tbody></table>")
		l.WriteString(wide("Critical path", t.String()))
	}
	l.Raw("<p>The first ranks, a row a connection, the busiest first. Where several steps are in flight, a "+
		"row shows the one that does most.</p>\n<p class=\"key\">%s</p>\n%s", timelineKey(),
		wide("Timeline", string(drawn)))
	l.Raw("<details><summary>Connections as a table</summary><p>Sums over the steps in flight, which "+
		"overlap.</p>%s</details>\n", wide("Connections", string(connections(l.Timeline))))
	switch {
	case l.Trace != "":
		l.Raw("<p>Every step is in the trace: <a href=\"%s\">%s</a>, for ui.perfetto.dev or "+
			"chrome://tracing.</p>\n", link(l.Trace), text(l.Trace))
	default:
		l.Raw("<p>For every step add <code>--trace trace.json.gz</code> and open that file in " +
			"ui.perfetto.dev.</p>\n")
	}
}

// link is the address of a file beside the page: nothing in it is a scheme or a query.
func link(file string) string {
	const plain = "-._~/"
	var b strings.Builder
	for _, c := range []byte(file) {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if strings.HasPrefix(file, "/") {
		return b.String()
	}
	return "./" + b.String()
}
