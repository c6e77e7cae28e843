package page

import (
	"fmt"
	"math"
	"slices"
)

const (
	circlesShown = 16
	circleRanks  = 96 // beyond it nodes are drawn instead of ranks
)

// edge is a line of a circle between two places, with the ranks it is of.
type edge struct {
	a, b   int32
	from   int32
	to     int32
	abroad bool // leaves the node
}

// figure is one drawing of ranks, or of nodes, on a circle.
type figure struct {
	what    string // "ring", "tree"
	channel int
	edges   []edge
	roots   []int32
	like    int // further channels that are the same
}

// places says where a rank is on the circles: by itself, or with its node.
type places struct {
	nodeOf []int32
	nodes  bool
	n      int
}

func newPlaces(nodeOf []int32) *places {
	p := &places{nodeOf: nodeOf, n: len(nodeOf)}
	if p.n > circleRanks {
		p.nodes, p.n = true, int(slices.Max(nodeOf))+1
	}
	return p
}

func (p *places) at(rank int32) int32 {
	if p.nodes {
		return p.nodeOf[rank]
	}
	return rank
}

// name of what is drawn at a place.
func (p *places) name(i int32) string {
	if p.nodes {
		return fmt.Sprintf("node %d", i)
	}
	return fmt.Sprintf("rank %d, node %d", i, p.nodeOf[i])
}

func (p *places) node(i int32) int32 {
	if p.nodes {
		return i
	}
	return p.nodeOf[i]
}

// join adds a line, unless both ends are at one place or it is there already.
func (p *places) join(edges []edge, from, to int32) []edge {
	e := edge{p.at(from), p.at(to), from, to, p.nodeOf[from] != p.nodeOf[to]}
	if e.a == e.b || p.nodes && slices.ContainsFunc(edges, func(o edge) bool { return o.a == e.a && o.b == e.b }) {
		return edges
	}
	return append(edges, e)
}

// circles draws each different ring and tree once.
func circles(rings []Ring, trees []Tree, nodeOf []int32) (drawn struct{ Rings, Trees markup }) {
	if len(nodeOf) < 2 {
		return drawn
	}
	p := newPlaces(nodeOf)
	if p.n < 2 {
		return drawn
	}
	var loops, rooted []figure
	for _, r := range rings {
		f := figure{what: "ring", channel: r.Channel}
		for i, a := range r.Order {
			f.edges = p.join(f.edges, a, r.Order[(i+1)%len(r.Order)])
		}
		loops = addFigure(loops, f)
	}
	for _, t := range trees {
		f := figure{what: "tree", channel: t.Channel}
		for rank, up := range t.Up {
			if up < 0 {
				f.roots = append(f.roots, p.at(int32(rank)))
				continue
			}
			f.edges = p.join(f.edges, int32(rank), up)
		}
		rooted = addFigure(rooted, f)
	}
	drawn.Rings, drawn.Trees = p.draw(loops), p.draw(rooted)
	return drawn
}

// addFigure adds a figure, or counts it to an equal one.
func addFigure(all []figure, f figure) []figure {
	for i := range all {
		if slices.Equal(all[i].edges, f.edges) {
			all[i].like++
			return all
		}
	}
	return append(all, f)
}

func (p *places) draw(all []figure) markup {
	var s svg
	n := float64(p.n)
	pos := func(i int32) (x, y float64) {
		a := 2*math.Pi*float64(i)/n - math.Pi/2
		return 100 + 82*math.Cos(a), 100 + 82*math.Sin(a)
	}
	for _, f := range all[:min(len(all), circlesShown)] {
		s.add(`<figure><svg viewBox="0 0 200 200" role="img" aria-label="%s of channel %d">`, f.what, f.channel)
		for _, e := range f.edges {
			ax, ay := pos(e.a)
			bx, by := pos(e.b)
			class := "hop"
			if e.abroad {
				class = "hop far"
			}
			s.add(`<path class="%s" d="M%.1f %.1fL%.1f %.1f"><title>rank %d → rank %d</title></path>`, class, ax, ay, bx, by, e.from, e.to)
		}
		for i := range int32(p.n) {
			x, y := pos(i)
			class := ""
			if slices.Contains(f.roots, i) {
				class = ` class="root"`
			}
			s.add(`<circle%s cx="%.1f" cy="%.1f" r="%.1f" fill="hsl(%d 60%% 50%%)"><title>%s</title></circle>`, class, x, y, max(2.5, min(9, 120/n)), (p.node(i)*67)%360, p.name(i))
			if n <= 32 {
				s.add(`<text class="in" x="%.1f" y="%.1f" text-anchor="middle">%d</text>`, x, y+3, i)
			}
		}
		s.add(`</svg><figcaption>channel %d`, f.channel)
		if f.like > 0 {
			s.add(` and %d more`, f.like)
		}
		s.WriteString(`</figcaption></figure>`)
	}
	if len(all) > circlesShown {
		s.add(`<p>and %d others</p>`, len(all)-circlesShown)
	}
	return s.html()
}
