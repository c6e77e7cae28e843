package page

import (
	"fmt"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/units"
)

const (
	lanesShown  = 40    // tracks of the drawing
	slicesShown = 12000 // slices of it
	left        = 150.0
	width       = 1100.0
	row         = 18.0
)

// hidden is the colour of calls beside which the GPU computes: that of others, pale.
const hidden = "kblue hid"

// classOf is the colour of a slice; those that wait have none.
var classOf = map[timeline.SliceKind]string{timeline.Computes: "kgreen", timeline.Moves: "kblue",
	timeline.Hides: hidden, timeline.Hosts: "kolive"}

// timeline draws one iteration: the first ranks, a row a stream, and the critical path.
// Slices of one kind that are too near to be seen apart are drawn as one.
func (w *writer) timeline() {
	t := w.p.Timeline
	if t == nil {
		return
	}
	from, to := t.Iteration()
	if to <= from {
		return
	}
	x := func(at units.Time) float64 {
		return left + (width-left-10)*float64(min(max(at, from), to)-from)/float64(to-from)
	}
	apart := units.Time(float64(to-from) / (width - left) / 2)
	var s chart.Drawing
	y, lanes, slices := 18.0, 0, 0
	lane := func(name string, list []timeline.Slice) {
		fmt.Fprintf(&s,
			`<text x="%g" y="%.1f" text-anchor="end">%s</text><line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, left-6, y+13, chart.EscapeXML(name), left, width, y+row-.5, y+row-.5)
		for _, e := range timeline.Join(list, apart) {
			if e.To <= from || e.From >= to || slices == slicesShown {
				continue
			}
			slices++
			wide, tip := max(0.4, x(e.To)-x(e.From)), fmt.Sprintf("%s, %.3f us from %.3f us", e.Name,
				(e.To-e.From).Micros(), (e.From-from).Micros())
			if classOf[e.Kind] == "" {
				s.Wait(x(e.From), y+5, wide, row-11, tip)
				continue
			}
			s.Add(`<rect class="%s" x="%.2f" y="%.1f" width="%.2f" height="%g"><title>%s</title></rect>`,
				classOf[e.Kind], x(e.From), y+2, wide, row-5, chart.EscapeXML(tip))
		}
		y += row
		lanes++
	}
	heading := func(name string) {
		fmt.Fprintf(&s, `<text class="head" x="4" y="%.1f">%s</text>`, y+15, chart.EscapeXML(name))
		y += row + 6
	}
	heading("critical path")
	lane("", t.PathSlices())
	left := 0
	for place := range w.p.Report.Ranks {
		streams := t.Streams(place)
		if lanes+len(streams) > lanesShown && place > 0 {
			left = w.p.Report.Ranks - place
			break
		}
		heading(w.p.Rank(place))
		computing := t.Computing(place, apart)
		for _, st := range streams {
			lane(timeline.StreamName(st), timeline.Hide(t.Slices(place, st), computing))
		}
	}
	w.Section("timeline", "One iteration")
	w.raw("<p>By rank and stream")
	if left > 0 {
		w.raw("; %d more ranks are in the file of --trace", left)
	}
	w.raw(". Kernels that follow each other closer than the drawing shows are one.</p>\n")
	w.key(fmt.Sprintf(`<span><i class="%s"></i>communication that compute hides</span>`, hidden))
	w.raw(`<div class="wide" tabindex="0" role="region" aria-label="Timeline"><svg class="time" viewBox="0 0 %g %.0f" style="min-width:%gpx" role="img" aria-label="timeline">`, width, y+8, width)
	var axis chart.Drawing
	const ms = float64(units.Millisecond)
	axis.Times(float64(to-from)/ms, "%.6g ms", 10, 14, y,
		func(v float64) float64 { return x(from + units.Time(v*ms)) })
	w.WriteString(axis.String() + s.String())
	w.raw("</svg></div>\n")
}
