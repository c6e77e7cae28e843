package page

import (
	"html/template"
	"math"
	"slices"
)

const (
	circlesShown = 16
	circleRanks  = 128
)

// circles draws each different ring once: ranks on a circle in rank order, the
// ring as lines, a colour for each node.
func circles(rings []Ring, nodeOf []int32) template.HTML {
	if len(rings) == 0 || len(nodeOf) < 2 || len(nodeOf) > circleRanks {
		return ""
	}
	var s svg
	var seen [][]int32
	for _, r := range rings {
		if len(seen) == circlesShown {
			break
		}
		if slices.ContainsFunc(seen, func(o []int32) bool { return slices.Equal(o, r.Order) }) {
			continue
		}
		seen = append(seen, r.Order)
		s.add(`<figure><svg viewBox="0 0 200 200" role="img" aria-label="ring of channel %d">`, r.Channel)
		n := float64(len(nodeOf))
		pos := func(rank int32) (x, y float64) {
			a := 2*math.Pi*float64(rank)/n - math.Pi/2
			return 100 + 82*math.Cos(a), 100 + 82*math.Sin(a)
		}
		for i, a := range r.Order {
			b := r.Order[(i+1)%len(r.Order)]
			ax, ay := pos(a)
			bx, by := pos(b)
			class := "hop"
			if nodeOf[a] != nodeOf[b] {
				class = "hop far"
			}
			s.add(`<path class="%s" d="M%.1f %.1fL%.1f %.1f"><title>rank %d → rank %d</title></path>`, class, ax, ay, bx, by, a, b)
		}
		for rank := range nodeOf {
			x, y := pos(int32(rank))
			s.add(`<circle cx="%.1f" cy="%.1f" r="%.1f" fill="hsl(%d 60%% 50%%)"><title>rank %d, node %d</title></circle>`, x, y, max(2.5, min(9, 120/n)),
				(nodeOf[rank]*67)%360, rank, nodeOf[rank])
			if n <= 32 {
				s.add(`<text class="in" x="%.1f" y="%.1f" text-anchor="middle">%d</text>`, x, y+3, rank)
			}
		}
		same := 0
		for _, o := range rings {
			if slices.Equal(o.Order, r.Order) {
				same++
			}
		}
		s.add(`</svg><figcaption>channel %d`, r.Channel)
		if same > 1 {
			s.add(` and %d like it`, same-1)
		}
		s.WriteString(`</figcaption></figure>`)
	}
	return s.html()
}
