package page

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/internal/report/html"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

const (
	timelineRows   = 90
	timelineSlices = 8000
)

var waitClass = map[string]string{"SendWait": "w1", "RecvWait": "w2", "SendGpuWait": "w3", "SendPeerWait": "w4",
	"RecvFlushWait": "w5", "RecvGpuWait": "w6", "KernelCh": "w7", "kernel": "w7"}

// timeline draws the tracks of a trace, a row each, in the trace's order.
func timeline(m *trace.Memory) markup {
	if m == nil || len(m.Events) == 0 {
		return ""
	}
	rows := make([]trace.TrackID, 0, len(m.Tracks))
	used := make([]bool, len(m.Tracks))
	end := units.Time(1)
	for i := range m.Events {
		e := &m.Events[i]
		if e.Phase == trace.Slice {
			used[e.Track] = true
			end = max(end, e.Start+e.Dur)
		}
	}
	for i := range m.Tracks {
		if used[i] {
			rows = append(rows, trace.TrackID(i))
		}
	}
	slices.SortFunc(rows, func(a, b trace.TrackID) int {
		x, y := &m.Tracks[a], &m.Tracks[b]
		return cmp.Or(cmp.Compare(x.ProcessSort, y.ProcessSort), cmp.Compare(x.Process, y.Process), cmp.Compare(x.Thread, y.Thread))
	})
	cut := len(rows) - timelineRows
	if cut > 0 {
		rows = rows[:timelineRows]
	}
	return drawRows(m, rows, max(cut, 0), end)
}

func drawRows(m *trace.Memory, rows []trace.TrackID, cut int, end units.Time) markup {
	const left, w, row = 210.0, 1100.0, 15.0
	line := make(map[trace.TrackID]int, len(rows))
	var s svg
	y, process := 18.0, int64(-1)
	top := make([]float64, len(rows))
	var heads svg
	for i, id := range rows {
		t := &m.Tracks[id]
		if t.Process != process {
			process = t.Process
			heads.add(`<text class="head" x="4" y="%.1f">%s</text>`, y+12, esc(t.ProcessName))
			y += row + 4
		}
		line[id], top[i] = i, y
		heads.add(`<text x="%g" y="%.1f" text-anchor="end">%s</text><line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, left-6, y+10.5, esc(t.ThreadName), left, w, y+row-1, y+row-1)
		y += row
	}
	s.add(`<svg viewBox="0 0 %g %.0f" style="min-width:900px" role="img" aria-label="timeline">%s`, w, y+26, heads.String())
	step := html.Step(end.Micros() / 8)
	x := func(us float64) float64 { return left + (w-left-10)*us/end.Micros() }
	for v := 0.0; v <= end.Micros(); v += step {
		s.add(`<line class="grid" x1="%.1f" x2="%.1f" y1="14" y2="%.1f"/><text x="%.1f" y="10" text-anchor="middle">%g us</text>`, x(v), x(v), y, x(v), v)
	}
	drawn, left2 := 0, 0
	for i := range m.Events {
		e := &m.Events[i]
		at, ok := line[e.Track]
		if e.Phase != trace.Slice || !ok {
			continue
		}
		if drawn++; drawn > timelineSlices {
			left2++
			continue
		}
		s.add(`<rect class="%s" x="%.2f" y="%.1f" width="%.2f" height="%g"><title>%s, %.3f us from %.3f us`, classOf(e.Name), x(e.Start.Micros()), top[at]+1,
			max(0.4, x((e.Start+e.Dur).Micros())-x(e.Start.Micros())), row-3, esc(e.Name), e.Dur.Micros(), e.Start.Micros())
		for _, a := range e.Args {
			if a.Key == "bytes" || a.Key == "Peer" || a.Key == "Rank" || a.Key == "Channel" {
				s.add(`, %s %d`, esc(a.Key), a.Int)
			}
		}
		s.WriteString(`</title></rect>`)
	}
	if cut > 0 || left2 > 0 {
		s.add(`<text x="4" y="%.1f">not drawn: %d tracks, %d slices; --trace has them all</text>`, y+18, cut, left2)
	}
	s.WriteString(`</svg>`)
	return s.html()
}

// phase is one kind of wait on the critical path.
type phase struct {
	Name, Class string
	Steps       int
	Us, Percent float64
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
		if e.Phase != trace.Slice || m.Tracks[e.Track].Process != nccltrace.CriticalPID {
			continue
		}
		at := slices.IndexFunc(out, func(p phase) bool { return p.Name == e.Name })
		if at < 0 {
			at = len(out)
			out = append(out, phase{Name: e.Name, Class: classOf(e.Name)})
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

func classOf(wait string) string {
	if c := waitClass[wait]; c != "" {
		return c
	}
	return "w0"
}
