package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// portsKept bounds the states of ports that are kept for the drawing.
const portsKept = 1 << 21

// portLog is one port's history from a trace: queued bytes over time, and pauses.
type portLog struct {
	queue []queued
	stops [][2]units.Time
}

type queued struct {
	at    units.Time
	bytes float64
}

// ports collects the states of a network's ports from a trace.
type ports struct {
	byName  map[string]*portLog
	byTrack map[trace.TrackID]string
	states  int
}

func newPorts() *ports {
	return &ports{map[string]*portLog{}, map[trace.TrackID]string{}, 0}
}

// track notes a track of ports.
func (p *ports) track(id trace.TrackID, t *trace.Track) {
	if t.Process == nccl.PortsPID || t.Process == nccl.PausesPID {
		p.byTrack[id] = t.ThreadName
	}
}

// emit adds an event of a port's track to its history: a pause, or a change of its queue.
func (p *ports) emit(e *trace.Event) {
	name, ok := p.byTrack[e.Track]
	if !ok || p.states >= portsKept {
		return
	}
	log := p.byName[name]
	if log == nil {
		log = &portLog{}
		p.byName[name] = log
	}
	switch {
	case e.Phase == trace.Slice && (e.Name == "paused" || e.Name == nccl.NoCredits):
		log.stops = append(log.stops, [2]units.Time{e.Start, e.Start + e.Dur})
	case e.Phase == trace.Counter && strings.HasSuffix(e.Name, " queued B") && len(e.Args) > 0:
		log.queue = append(log.queue, queued{e.Start, e.Args[0].Num})
	default:
		return
	}
	p.states++
}

// network writes what happened to frames.
func (l *layout) network() {
	f := l.Net
	if f == nil {
		return
	}
	l.Section("network", "Network, frame by frame")
	l.Raw("<p>One operation of the last size: %s.</p>\n", text(strings.Join(f.Brief(), "; ")))
	for _, jam := range []string{l.Incast, l.Crowd} {
		if jam != "" {
			l.Raw("<p>%s.</p>\n", text(strings.ToUpper(jam[:1])+jam[1:]))
		}
	}
	crowded := crowdedPorts(f, l.Links)
	if m := incast(crowded); m != "" {
		l.Raw("<h3>Incast: who sends through the crowded ports</h3>\n" +
			"<p>Columns are the ports with the deepest queues of those that several inputs feed, of all " +
			"operations that were timed. A cell is a sender's share of what the port carried; the darker " +
			"(in dark mode the brighter), the larger.</p>\n")
		l.WriteString(wide("Incast map", string(m)))
		l.Raw("<details><summary>Senders and receivers as a table</summary>%s</details>\n",
			wide("Streams", string(streamsDrawing(crowded))))
	}
	rows := portRows(f, l.Ports)
	held := []string{"pauses", "were paused, by when they were paused first: so pauses are seen to spread",
		"paused"}
	if slices.ContainsFunc(f.Stopped, func(s congestion.Stopped) bool { return s.Credits }) {
		held = []string{"credits", "waited for credits of InfiniBand", "no credits"}
	}
	if m := portTimes(rows, l.Ports); m != "" {
		l.Raw("<h3>Queues and %s over time</h3>\n"+
			"<p>The ports with the deepest queues, then those that %s. Time is that of the operation "+
			"below, from when its first rank begins: what ranks sent ahead in the operations before it is "+
			"still in the queues then, and those after it are not drawn.</p>\n<p class=\"key\">%s</p>\n%s",
			held[0], held[1], portKey(rows, l.Ports, held[2]), wide("Queues and "+held[0], string(m)))
	}
	if len(rows) > 0 {
		l.Raw("<details%s><summary>Ports as a table</summary>%s</details>\n",
			map[bool]string{true: " open"}[len(rows) <= most],
			wide("Ports", string(portTable(f, rows, l.Ports, held[2]))))
	}
	if len(f.Held) > 0 {
		l.Raw("<h3>Head-of-line blocking</h3>\n"+
			"<p>Messages that waited on a paused link for a queue that they are not in, the longest "+
			"first.</p>\n%s", wide("Head-of-line blocking", string(heldTable(f))))
	}
}

// heldTable lists head-of-line blocking.
func heldTable(f *congestion.Facts) markup {
	var t chart.Drawing
	t.WriteString(
		`<table><thead><tr><th class="t">sender</th><th class="t">receiver</th><th>waited us</th><th class="t">on</th><th class="t">for the queue of</th></tr></thead><tbody>` + "\n")
	for _, h := range f.Held {
		t.Add("<tr><td class=\"t\">%s</td><td class=\"t\">%s</td><td>%.2f</td><td class=\"t\">%s</td><td "+
			"class=\"t\">%s</td></tr>\n", text(h.From), text(h.To), h.Us, text(h.At), text(h.Behind))
	}
	t.WriteString("</tbody></table>")
	return markup(t.String())
}

// most rows of a table that is open from the start.
const most = 8

// crowdedPort is a port whose queue had something in it, with all whose messages
// crossed it.
type crowdedPort struct {
	congestion.Port
	from []exec.Stream
}

func crowdedPorts(f *congestion.Facts, links []exec.LinkLoad) (out []crowdedPort) {
	for _, p := range f.Ports {
		i := slices.IndexFunc(links, func(l exec.LinkLoad) bool { return l.Name == p.Name && l.Net != nil })
		if p.PeakBytes > 0 && len(p.From) > 0 && i >= 0 {
			out = append(out, crowdedPort{p, links[i].Net.From})
		}
	}
	return out
}

// sendersShown are the ports of hosts that are rows of the map; of more, their nodes
// are.
const sendersShown = 16

// incast is the map of senders by crowded ports.
func incast(all []crowdedPort) markup {
	if len(all) == 0 {
		return ""
	}
	senders := map[string]bool{}
	for _, p := range all {
		for _, s := range p.from {
			senders[s.From] = true
		}
	}
	row := func(name string) string {
		if len(senders) > sendersShown {
			name, _, _ = strings.Cut(name, "/")
		}
		return name
	}
	var rows []string
	sum := map[[2]string]units.Bytes{}
	whole, largest := map[string]units.Bytes{}, 0.0
	for _, p := range all {
		for _, s := range p.from {
			if !slices.Contains(rows, row(s.From)) {
				rows = append(rows, row(s.From))
			}
			sum[[2]string{row(s.From), p.Name}] += s.Bytes
			whole[p.Name] += s.Bytes
		}
	}
	share := func(r string, p *crowdedPort) float64 {
		return float64(sum[[2]string{r, p.Name}]) / float64(max(1, whole[p.Name]))
	}
	for i := range all {
		for _, r := range rows {
			largest = max(largest, share(r, &all[i]))
		}
	}
	slices.SortFunc(rows, natural)
	var s chart.Drawing
	s.WriteString(`<table class="map"><thead><tr><th class="t" scope="col">sender</th>`)
	for _, p := range all {
		s.Add(`<th scope="col">%s<br><small>%d inputs</small><br><small>queue to %s</small></th>`,
			text(p.Name), p.Inputs, amount(p.PeakBytes))
	}
	s.WriteString("</tr></thead><tbody>\n")
	for _, r := range rows {
		s.Add(`<tr><th scope="row">%s</th>`, text(r))
		for i := range all {
			x := share(r, &all[i])
			if x == 0 {
				s.WriteString(`<td class="off">–</td>`)
				continue
			}
			s.Add(`<td class="r%d">%.0f %%<small>%s</small></td>`, Amount(x/largest), 100*x,
				amount(int64(sum[[2]string{r, all[i].Name}])))
		}
		s.WriteString("</tr>\n")
	}
	s.WriteString("</tbody></table>")
	return markup(s.String())
}

// natural orders names by their texts and the numbers between them.
func natural(a, b string) int {
	ta, na := cut(a)
	tb, nb := cut(b)
	return cmp.Or(strings.Compare(ta[0], tb[0]), slices.Compare(na, nb), strings.Compare(a, b))
}

// amount is a number of bytes in words.
func amount(n int64) string {
	switch {
	case n >= 10e6:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}

// streamsListed are the pairs of ports of each crowded one that the table has.
const streamsListed = 24

// streamsDrawing is the table behind the map.
func streamsDrawing(all []crowdedPort) markup {
	var t chart.Drawing
	t.WriteString(
		`<table><thead><tr><th class="t">port</th><th class="t">sender</th><th class="t">receiver</th><th>bytes</th></tr></thead><tbody>` + "\n")
	for _, p := range all {
		for _, s := range p.from[:min(streamsListed, len(p.from))] {
			t.Add("<tr><td class=\"t\">%s</td><td class=\"t\">%s</td><td "+
				"class=\"t\">%s</td><td>%s</td></tr>\n", text(p.Name), text(s.From), text(s.To),
				grouped(s.Bytes))
		}
		if n := len(p.from) - streamsListed; n > 0 {
			t.Add("<tr><td class=\"t\">%s</td><td class=\"t\" colspan=\"3\">and %d pairs that sent "+
				"less</td></tr>\n", text(p.Name), n)
		}
	}
	t.WriteString("</tbody></table>")
	return markup(t.String())
}

// portRows are the names of the ports that are drawn.
func portRows(f *congestion.Facts, log *ports) (out []string) {
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, p := range f.Ports {
		if p.PeakBytes > 0 {
			add(p.Name)
		}
	}
	for _, s := range f.Stopped {
		add(s.Name)
		if log != nil && s.Behind != "" && log.byName[s.Behind] != nil {
			add(s.Behind)
		}
	}
	return out
}

// portBins are the columns of time of a row.
const portBins = 250

// portTimes draws for each port how much waited there, and when it was paused.
func portTimes(rows []string, log *ports) markup {
	if log == nil || len(rows) == 0 {
		return ""
	}
	end, peak := units.Time(0), log.deepest(rows...)
	for _, name := range rows {
		p := log.byName[name]
		if p == nil {
			continue
		}
		for _, q := range p.queue {
			end = max(end, q.at)
		}
		for _, x := range p.stops {
			end = max(end, x[1])
		}
	}
	if end == 0 {
		return ""
	}
	const left, w, row = 190.0, 1190.0, 22.0
	x := func(t units.Time) float64 { return left + (w-left-12)*float64(t)/float64(end) }
	var s chart.Drawing
	high := 26 + row*float64(len(rows))
	s.Add(`<svg class="time" viewBox="0 0 %g %.0f" style="min-width:%gpx" role="img" aria-label="queues and pauses over time">`, w, high, w)
	s.Times(end.Micros(), "%g us", 13, 18, high-4, func(v float64) float64 { return x(units.FromMicros(v)) })
	for i, name := range rows {
		y := 22 + row*float64(i)
		s.Add(`<text x="%g" y="%.1f" text-anchor="end">%s</text><line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, left-8, y+14, chart.EscapeXML(name), left, w-12, y+row-1.5, y+row-1.5)
		if p := log.byName[name]; p != nil {
			p.draw(&s, name, y, end, peak, x)
		}
	}
	s.WriteString("</svg>")
	return markup(s.String())
}

// draw draws a row: the deepest queue of each column, and below it the pauses.
func (p *portLog) draw(s *chart.Drawing, name string, y float64, end units.Time, peak float64,
	x func(units.Time) float64) {
	bins := p.bins(end)
	at := func(c int) units.Time { return units.Time(float64(end) * float64(c) / portBins) }
	step := func(c int) int {
		if bins[c] <= 0 {
			return -1
		}
		return Amount(bins[c] / peak)
	}
	for c := 0; c < portBins; {
		k, from, most := step(c), c, bins[c]
		for c++; c < portBins && step(c) == k; c++ {
			most = max(most, bins[c])
		}
		if k >= 0 {
			s.Add(`<rect class="r%d" x="%.1f" y="%.1f" width="%.1f" height="12"><title>%s: queue to %s, %.4g to %.4g us</title></rect>`, k, x(at(from)), y+2, x(at(c))-x(at(from)), chart.EscapeXML(name), amount(int64(most)), at(from).Micros(), at(c).Micros())
		}
	}
	for i := 0; i < len(p.stops); { // pauses that the eye cannot part are one
		from, to, n, paused := p.stops[i][0], p.stops[i][1], 1, p.stops[i][1]-p.stops[i][0]
		for i++; i < len(p.stops) && x(p.stops[i][0])-x(to) < 1; i++ {
			n, paused, to = n+1, paused+p.stops[i][1]-p.stops[i][0], p.stops[i][1]
		}
		s.Add(`<rect class="korange" x="%.1f" y="%.1f" width="%.1f" height="4"><title>%s: %d pauses, %.4g us of %.4g to %.4g us</title></rect>`, x(from), y+15, max(1, x(to)-x(from)), chart.EscapeXML(name), n, paused.Micros(), from.Micros(), to.Micros())
	}
}

// bins are the deepest queues by column of time.
func (p *portLog) bins(end units.Time) (out [portBins]float64) {
	for i, q := range p.queue {
		until := end
		if i+1 < len(p.queue) {
			until = p.queue[i+1].at
		}
		from, to := int(float64(q.at)/float64(end)*portBins),
			int(math.Ceil(float64(until)/float64(end)*portBins))
		for c := max(0, from); c < min(portBins, max(to, from+1)); c++ {
			out[c] = max(out[c], q.bytes)
		}
	}
	return out
}

// deepest is the most bytes that waited at one of some ports.
func (l *ports) deepest(names ...string) (most float64) {
	for _, name := range names {
		if p := l.byName[name]; p != nil {
			for _, q := range p.queue {
				most = max(most, q.bytes)
			}
		}
	}
	return most
}

// portKey names what the drawing shows; held, what kept ports from sending.
func portKey(rows []string, log *ports, held string) markup {
	var s chart.Drawing
	peak := int64(log.deepest(rows...))
	for i := range steps {
		s.Add(`<span><i class="r%d"></i>to %s</span>`, i, amount(peak*int64(i+1)/steps))
	}
	s.Add(`<span><i class="korange thin"></i>%s (thin)</span>`, held)
	return markup(s.String())
}

// portTable is the table behind it. held names what kept ports from sending.
func portTable(f *congestion.Facts, rows []string, log *ports, held string) markup {
	var t chart.Drawing
	t.Add(`<table><thead><tr><th class="t">port</th><th>inputs</th><th>queue to</th><th>marks</th><th>%s us</th><th>pause frames</th><th>first at us</th><th class="t">behind the queue of</th></tr></thead><tbody>`+"\n", held)
	number := func(ok bool, format string, v any) string {
		if !ok {
			return "–"
		}
		return fmt.Sprintf(format, v)
	}
	for _, name := range rows {
		var p congestion.Port
		var s congestion.Stopped
		if i := slices.IndexFunc(f.Ports, func(x congestion.Port) bool { return x.Name == name }); i >= 0 {
			p = f.Ports[i]
		}
		if i := slices.IndexFunc(f.Stopped, func(x congestion.Stopped) bool { return x.Name == name }); i >=
			0 {
			s = f.Stopped[i]
		}
		if p.Inputs == 0 && log != nil { // its queue is not among the deepest that several inputs fed
			p.PeakBytes = int64(log.deepest(name))
		}
		t.Add("<tr><td class=\"t\">%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>"+
			"%s</td><td class=\"t\">%s</td></tr>\n", text(name),
			number(p.Inputs > 0, "%d", p.Inputs), number(p.PeakBytes > 0, "%s", amount(p.PeakBytes)),
			number(p.Inputs > 0, "%d", p.Marked),
			number(s.Us > 0, "%.2f", s.Us), number(s.Frames > 0, "%d", s.Frames),
			number(s.Us > 0 && !s.Credits, "%.2f", s.FirstUs), cmp.Or(text(s.Behind), "–"))
	}
	t.WriteString("</tbody></table>")
	return markup(t.String())
}
