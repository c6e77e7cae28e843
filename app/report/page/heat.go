package page

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/topo"
)

// cells are drawings that are tables: every number is in its cell.

// heat shows the predicted time of every rival at every size against the best.
func heat(points []point, rivals []rival) markup {
	if len(points) == 0 || len(rivals) == 0 {
		return ""
	}
	var s chart.Drawing
	s.WriteString(`<table class="map"><thead><tr><th class="t" scope="col">algorithm and protocol</th>`)
	for _, p := range points {
		s.Add(`<th scope="col">%s</th>`, sizeName(p.Size))
	}
	s.WriteString("</tr></thead><tbody>\n")
	for _, r := range rivals {
		s.Add(`<tr><th scope="row">%s</th>`, text(r.Name))
		for i := range points {
			s.WriteString(heatCell(r.Times[i], fastest(rivals, i)))
		}
		s.WriteString("</tr>\n")
	}
	s.WriteString("</tbody></table>")
	return markup(s.String())
}

func fastest(rivals []rival, i int) float64 {
	best := math.Inf(1)
	for _, r := range rivals {
		if r.Times[i] > 0 {
			best = min(best, r.Times[i])
		}
	}
	return best
}

// heatCell is a time over the best and the time; a factor of 10 is as dark as it gets.
func heatCell(t, best float64) string {
	switch {
	case t <= 0:
		return `<td class="off">off</td>`
	case t == best:
		return fmt.Sprintf(`<td class="r0 won">best<small>%s us</small></td>`, brief(t))
	}
	return fmt.Sprintf(`<td class="r%d">×%s<small>%s us</small></td>`, Amount(math.Log10(t/best)),
		brief(t/best), brief(t))
}

// brief prints a positive number with three digits.
func brief(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// heatKey names the steps of the ramp.
func heatKey() markup {
	var s chart.Drawing
	for i := range steps {
		name := fmt.Sprintf("to ×%.2g", math.Pow(10, float64(i+1)/steps))
		if i == steps-1 {
			name = "more"
		}
		s.Add(`<span><i class="r%d"></i>%s</span>`, i, name)
	}
	return markup(s.String())
}

// matrixNodes bounds the rows and columns of a path matrix that is drawn.
const matrixNodes = 40

// matrix shows the paths from each GPU and NIC port to each: kind and bandwidth.
func matrix(s *topo.System) markup {
	if s == nil {
		return ""
	}
	ends := append(append([]topo.NodeID{}, s.Of(topo.GPU)...), s.Of(topo.NET)...)
	if len(ends) > matrixNodes || len(ends) < 2 {
		return ""
	}
	lo, hi := widths(s, ends)
	var b chart.Drawing
	b.WriteString(`<table class="map"><thead><tr><th class="t" scope="col">from</th>`)
	for _, to := range ends {
		b.Add(`<th scope="col">%s</th>`, text(s.Short(to)))
	}
	b.WriteString("</tr></thead><tbody>\n")
	for _, from := range ends {
		b.Add(`<tr><th scope="row">%s</th>`, text(s.Short(from)))
		for _, to := range ends {
			p := s.Path(from, to)
			switch {
			case from == to:
				b.WriteString(`<td class="off">–</td>`)
			case p.BW <= 0:
				b.Add(`<td class="off">%s</td>`, p.Kind)
			default:
				b.Add(`<td class="r%d">%s<small>%.4g</small></td>`,
					Amount(math.Log(float64(p.BW)/lo)/math.Log(hi/lo)), p.Kind, float64(p.BW))
			}
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table>")
	return markup(b.String())
}

// widths are the least and the largest bandwidth of the paths between ends.
func widths(s *topo.System, ends []topo.NodeID) (lo, hi float64) {
	lo, hi = math.Inf(1), 0
	for _, from := range ends {
		for _, to := range ends {
			if bw := float64(s.Path(from, to).BW); from != to && bw > 0 {
				lo, hi = min(lo, bw), max(hi, bw)
			}
		}
	}
	if hi <= lo {
		hi = 2 * lo
	}
	return lo, hi
}
