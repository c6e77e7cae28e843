package page

import (
	"fmt"

	"github.com/simccl/simccl/topo"
)

// matrixNodes bounds the rows and columns of a path matrix that is drawn.
const matrixNodes = 40

// pathHue gives every kind of path a colour, from near to far.
var pathHue = map[topo.PathKind]string{
	topo.PathLOC: "var(--card)", topo.PathNVL: "hsl(150 55% 42%)", topo.PathNVB: "hsl(165 50% 42%)", topo.PathC2C: "hsl(175 50% 40%)",
	topo.PathPIX: "hsl(205 65% 48%)", topo.PathPXB: "hsl(220 55% 52%)", topo.PathP2C: "hsl(235 45% 58%)", topo.PathPXN: "hsl(265 45% 58%)",
	topo.PathPHB: "hsl(40 75% 45%)", topo.PathSYS: "hsl(12 70% 50%)", topo.PathNET: "hsl(300 35% 50%)",
}

// matrix draws the paths from each GPU and net to each GPU and net: kind and
// bandwidth, a colour for each kind.
func matrix(s *topo.System) markup {
	if s == nil {
		return ""
	}
	ends := append(append([]topo.NodeID{}, s.Of(topo.GPU)...), s.Of(topo.NET)...)
	if len(ends) > matrixNodes || len(ends) < 2 {
		return ""
	}
	d := &drawing{s: s}
	const left, cell, row, top = 84.0, 46.0, 26.0, 26.0
	w, h := left+cell*float64(len(ends)), top+row*float64(len(ends))
	d.add(`<svg viewBox="0 0 %g %g" style="min-width:%gpx;max-width:%gpx" role="img" aria-label="paths">`, w, h, min(w, 900), w*1.25)
	for i, from := range ends {
		y := top + row*float64(i)
		d.add(`<text x="%g" y="%g" text-anchor="end">%s</text>`, left-6, y+17, esc(d.s.Short(from)))
		d.add(`<text x="%g" y="%g" text-anchor="middle" style="font-size:9.5px">%s</text>`, left+cell*(float64(i)+.5), top-8, esc(short(d.s.Short(from))))
		for j, to := range ends {
			x := left + cell*float64(j)
			if s.Nodes[from].Kind == topo.NET && s.Nodes[to].Kind == topo.NET {
				continue
			}
			p := s.Path(from, to)
			what := fmt.Sprintf("%s → %s: %s, %.4g GB/s", d.s.Short(from), d.s.Short(to), p.Kind, float64(p.BW))
			if i == j {
				what = d.s.Short(from)
			}
			hue, ok := pathHue[p.Kind]
			if !ok {
				hue = "var(--line)"
			}
			d.add(`<g><rect x="%g" y="%g" width="%g" height="%g" rx="3" fill="%s"/>`, x+1, y+1, cell-2, row-2, hue)
			if i != j {
				d.add(`<text class="cell" x="%g" y="%g" text-anchor="middle">%s</text>`, x+cell/2, y+12, p.Kind)
				d.add(`<text class="cell soft" x="%g" y="%g" text-anchor="middle">%.4g</text>`, x+cell/2, y+21.5, float64(p.BW))
			}
			d.add(`<title>%s</title></g>`, esc(what))
		}
	}
	d.WriteString(`</svg>`)
	return d.html()
}

// short cuts a name to what fits over a column.
func short(name string) string {
	if r := []rune(name); len(r) > 7 {
		return string(r[:6]) + "…"
	}
	return name
}
