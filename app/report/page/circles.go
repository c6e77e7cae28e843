package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
)

const (
	circlesShown = 32
	circlesOpen  = 8  // of them before the fold
	circleRanks  = 96 // beyond it nodes are drawn instead of ranks
	circleNumber = 32 // up to so many places have their number in them
	circleNodes  = 16 // up to so many nodes have an arc with their name
	ranksListed  = 128
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
	what     string // "ring", "tree"
	channels []int  // that are the same
	edges    []edge
	roots    []int32
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

func (p *places) name(i int32) string {
	if p.nodes {
		return fmt.Sprintf("node %d", i)
	}
	return fmt.Sprintf("rank %d, node %d", i, p.nodeOf[i])
}

// join adds a line, unless both ends are at one place or it is there already.
func (p *places) join(edges []edge, from, to int32) []edge {
	e := edge{p.at(from), p.at(to), from, to, p.nodeOf[from] != p.nodeOf[to]}
	if e.a == e.b || p.nodes && slices.ContainsFunc(edges, func(o edge) bool {
		return o.a == e.a && o.b == e.b
	}) {
		return edges
	}
	return append(edges, e)
}

// circles draws each different ring and tree once.
func circles(rings []ring, trees []tree, nodeOf []int32) (drawn struct{ Rings, Trees markup }) {
	if len(nodeOf) < 2 {
		return drawn
	}
	p := newPlaces(nodeOf)
	if p.n < 2 {
		return drawn
	}
	var loops, rooted []figure
	for _, r := range rings {
		f := figure{what: "ring", channels: []int{r.Channel}}
		for i, a := range r.Order {
			f.edges = p.join(f.edges, a, r.Order[(i+1)%len(r.Order)])
		}
		loops = addFigure(loops, f)
	}
	for _, t := range trees {
		f := figure{what: "tree", channels: []int{t.Channel}}
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

// addFigure adds a figure, or its channel to an equal one.
func addFigure(all []figure, f figure) []figure {
	for i := range all {
		if slices.Equal(all[i].edges, f.edges) {
			all[i].channels = append(all[i].channels, f.channels...)
			return all
		}
	}
	return append(all, f)
}

func (f *figure) name() string {
	slices.Sort(f.channels)
	word := "channel "
	if len(f.channels) > 1 {
		word = "channels "
	}
	return word + ranges(f.channels)
}

func (p *places) draw(all []figure) markup {
	var s chart.Drawing
	shown := all[:min(len(all), circlesShown)]
	open := min(len(shown), circlesOpen)
	p.figures(&s, shown[:open])
	if more := shown[open:]; len(more) > 0 {
		s.Add("<details><summary>%d more channels</summary>", len(more))
		p.figures(&s, more)
		if len(all) > circlesShown {
			s.Add("<p>and %d others</p>\n", len(all)-circlesShown)
		}
		s.WriteString("</details>\n")
	}
	return markup(s.String())
}

func (p *places) figures(s *chart.Drawing, list []figure) {
	s.WriteString(`<div class="rings">`)
	for i := range list {
		p.figure(s, &list[i])
	}
	s.WriteString("</div>\n")
}

// The circle's size: ranks on one radius, arcs of nodes and their names outside.
const (
	circleSize   = 300.0
	circleRadius = 98.0
	arcRadius    = 117.0
	nameRadius   = 133.0
)

func (p *places) polar(i, radius float64) (x, y float64) {
	a := 2*math.Pi*i/float64(p.n) - math.Pi/2
	return circleSize/2 + radius*math.Cos(a), circleSize/2 + radius*math.Sin(a)
}

func (p *places) figure(s *chart.Drawing, f *figure) {
	n := float64(p.n)
	r := max(2.5, min(12, 0.46*2*math.Pi*circleRadius/n))
	s.Add(`<figure><svg viewBox="0 0 %g %g" role="img" aria-label="%s, %s">`, circleSize, circleSize, f.what,
		f.name())
	p.arcs(s)
	for _, e := range f.edges {
		ax, ay := p.polar(float64(e.a), circleRadius)
		bx, by := p.polar(float64(e.b), circleRadius)
		class := ""
		if e.abroad {
			class = " far"
		}
		s.Add(`<path class="hop%s" d="M%.1f %.1fL%.1f %.1f"><title>rank %d → rank %d</title></path>`, class,
			ax, ay, bx, by, e.from, e.to)
		s.Add(`<path class="tip%s" d="%s"/>`, class, head(ax, ay, bx, by, r))
	}
	for i := range int32(p.n) {
		x, y := p.polar(float64(i), circleRadius)
		class := "rank"
		if slices.Contains(f.roots, i) {
			class += " root"
		}
		s.Add(`<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"><title>%s</title></circle>`, class, x, y, r,
			p.name(i))
		if p.n <= circleNumber {
			s.Add(`<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`, x, y+4, i)
		}
	}
	s.Add(`</svg><figcaption>%s</figcaption></figure>`, f.name())
}

// head is the tip of an arrow that ends before the circle of radius r at b.
func head(ax, ay, bx, by, r float64) string {
	d := math.Hypot(bx-ax, by-ay)
	if d == 0 {
		return ""
	}
	ux, uy := (bx-ax)/d, (by-ay)/d
	const long, half = 8.0, 3.6
	x, y := bx-ux*(r+1), by-uy*(r+1)
	return fmt.Sprintf("M%.1f %.1fL%.1f %.1fL%.1f %.1fz", x, y, x-ux*long-uy*half, y-uy*long+ux*half,
		x-ux*long+uy*half, y-uy*long-ux*half)
}

// arcs draws an arc over the ranks of each node, with its name.
func (p *places) arcs(s *chart.Drawing) {
	if p.nodes || int(slices.Max(p.nodeOf))+1 > circleNodes {
		return
	}
	for i := 0; i < p.n; {
		end := i
		for end+1 < p.n && p.nodeOf[end+1] == p.nodeOf[i] {
			end++
		}
		from, to := float64(i)-0.35, float64(end)+0.35
		ax, ay := p.polar(from, arcRadius)
		bx, by := p.polar(to, arcRadius)
		large := 0
		if to-from > float64(p.n)/2 {
			large = 1
		}
		s.Add(`<path class="arc" d="M%.1f %.1fA%g %g 0 %d 1 %.1f %.1f"/>`, ax, ay, arcRadius, arcRadius,
			large, bx, by)
		x, y := p.polar((from+to)/2, nameRadius)
		s.Add(`<text class="soft" x="%.1f" y="%.1f" text-anchor="middle">n%d</text>`, x, y+4, p.nodeOf[i])
		i = end + 1
	}
}

// orders lists the rings as text.
func orders(rings []ring) markup {
	var t chart.Drawing
	t.WriteString(`<table><thead><tr><th>channel</th><th class="t">ranks in order</th></tr></thead><tbody>`)
	for _, r := range rings {
		t.Add("<tr><td>%d</td><td class=\"t\">%s</td></tr>\n", r.Channel, listed(r.Order, " → "))
	}
	t.WriteString("</tbody></table>")
	return markup(t.String())
}

// uppers lists the trees as text.
func uppers(trees []tree) markup {
	var t chart.Drawing
	t.WriteString(
		`<table><thead><tr><th>channel</th><th>root</th><th class="t">rank → the one above it</th></tr></thead><tbody>`)
	for _, tr := range trees {
		var roots []int32
		var parts []string
		for rank, up := range tr.Up {
			if up < 0 {
				roots = append(roots, int32(rank))
			} else if len(parts) < ranksListed {
				parts = append(parts, fmt.Sprintf("%d → %d", rank, up))
			}
		}
		if more := len(tr.Up) - len(roots) - len(parts); more > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", more))
		}
		t.Add("<tr><td>%d</td><td>%s</td><td class=\"t\">%s</td></tr>\n", tr.Channel, listed(roots, ", "),
			strings.Join(parts, ", "))
	}
	t.WriteString("</tbody></table>")
	return markup(t.String())
}

func listed(ranks []int32, between string) string {
	var parts []string
	for _, r := range ranks[:min(len(ranks), ranksListed)] {
		parts = append(parts, strconv.Itoa(int(r)))
	}
	s := strings.Join(parts, between)
	if more := len(ranks) - ranksListed; more > 0 {
		s += fmt.Sprintf("%s… (%d more)", between, more)
	}
	return s
}

// circleSections writes rings and trees, and both as text.
func (l *layout) circleSections() {
	c := circles(l.Rings, l.Trees, l.NodeOf)
	if c.Rings != "" {
		l.Section("rings", "Rings")
		l.Raw("<p>Ranks on a circle, the arcs around them are the nodes, n0 and so on (of many ranks the "+
			"nodes are on the circle). Data goes along the arrows; the thick coloured ones leave a "+
			"node.</p>%s", c.Rings)
		l.Raw("<details><summary>Rings as text</summary>%s</details>\n",
			wide("Rings as text", string(orders(l.Rings))))
	}
	if c.Trees != "" {
		l.Section("trees", "Trees")
		l.Raw("<p>An arrow leads from each rank to the one above it; the root has a thick border.</p>%s",
			c.Trees)
		l.Raw("<details><summary>Trees as text</summary>%s</details>\n",
			wide("Trees as text", string(uppers(l.Trees))))
	}
}
