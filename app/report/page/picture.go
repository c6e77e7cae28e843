package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/app/report/svg"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/topo"
)

// place is where a node is drawn.
type place struct {
	x, y float64
	set  bool
}

// drawing lays out one System: CPUs above, the PCI trees below them, NVLink
// switches at the foot.
type drawing struct {
	svg.Drawing
	s      *topo.System
	at     []place
	next   float64 // columns of the row so far
	widest float64
	top    float64 // y of the row's first line
	deep   float64 // of the row
	loads  map[string]*exec.LinkLoad
	page   *Page
	height float64
	box    float64                 // width of a node
	gapX   float64                 // of a column
	drawn  [kindsOfLinks][]float64 // bandwidths of links of a kind, GB/s, of a machine without loads
}

const (
	gapY     = 66.0
	gap      = 12.0
	letter   = 7.4 // width of a character of 12 px
	switches = 96.0
	leastBox = 46.0
	mostName = 14 // characters of a node's name
	// rowColumns is where a further CPU begins a new row.
	rowColumns = 17
)

// boxes is the width of the drawing's nodes: that of the longest name.
func boxes(s *topo.System) float64 {
	w := leastBox
	for n := range s.Nodes {
		if s.Nodes[n].Kind != topo.NVS {
			w = max(w, letter*float64(len([]rune(svg.Short(s.Short(topo.NodeID(n)), mostName))))+10)
		}
	}
	return w
}

// Links of a drawing by their load: classes l0 to l3 of the style, and the width.
const loadSteps = 4

func loadStep(share float64) int { return int(max(0, min(loadSteps-1, share*loadSteps))) }

func loadWidth(share float64) float64 { return 1.5 + 4.5*max(0, min(1, share)) }

// linkClass are the colours of links without loads, by kind; their bandwidths are listed below.
var linkClass = [kindsOfLinks]string{topo.LinkNVL: "nvl", topo.LinkC2C: "c2c", topo.LinkPCI: "pcie",
	topo.LinkSYS: "sys", topo.LinkNET: "wire"}

const (
	keyHeight    = 34.0
	kindsOfLinks = int(topo.LinkNET) + 1
)

// widthOf is a link's width by its bandwidth, GB/s.
func (d *drawing) widthOf(bw float64) float64 { return 1.2 + 0.9*math.Log2(1+max(0, bw)/16) }

// note keeps a link's bandwidth for the key.
func (d *drawing) note(l *topo.Link) {
	if bw := float64(l.BW); linkClass[l.Kind] != "" && !slices.Contains(d.drawn[l.Kind], bw) {
		d.drawn[l.Kind] = append(d.drawn[l.Kind], bw)
	}
}

// kinds is the key of a machine without loads: each kind of link with its bandwidths.
func (d *drawing) kinds(y float64) {
	x := 8.0
	for k, bws := range d.drawn {
		if len(bws) == 0 {
			continue
		}
		slices.Sort(bws)
		var words []string
		for _, bw := range bws {
			words = append(words, strconv.FormatFloat(bw, 'g', 4, 64))
		}
		label := fmt.Sprintf("%s %s GB/s", topo.LinkKind(k), strings.Join(words, ", "))
		d.Add(`<path class="link %s" stroke-width="3" d="M%.0f %.0fh24"/><text x="%.0f" y="%.0f">%s</text>`,
			linkClass[k], x, y-4, x+30, y, svg.Escape(label))
		x += 54 + letter*float64(len([]rune(label)))
	}
}

// loadKey names the steps.
func loadKey() markup {
	var s svg.Drawing
	for i := range loadSteps {
		s.Add(`<span><svg viewBox="0 0 30 12" aria-hidden="true"><path class="l%d" stroke-width="%.1f" d="M0 6H30"/></svg>%d to %d %%</span>`, i, loadWidth((float64(i)+.5)/loadSteps), 100*i/loadSteps, 100*(i+1)/loadSteps)
	}
	s.WriteString(
		`<span><svg viewBox="0 0 30 12" aria-hidden="true"><path class="idle" d="M0 6H30"/></svg>nothing</span>`)
	return markup(s.String())
}

func picture(p *Page, channels []route) markup {
	if p.System == nil {
		return ""
	}
	d := &drawing{s: p.System, at: make([]place, len(p.System.Nodes)), page: p, box: boxes(p.System)}
	d.gapX = d.box + gap
	d.loads, _ = Loads(p.System, p.Host, p.Links, p.Folded)
	for _, c := range d.s.Of(topo.CPU) {
		if d.next >= rowColumns {
			d.top, d.next, d.deep = d.top+(d.deep+1.2)*gapY, 0, 0
		}
		d.tree(c, 0)
	}
	for n := range d.s.Nodes { // what hangs on no CPU
		if d.s.Nodes[n].Kind != topo.NVS && !d.at[n].set {
			d.tree(topo.NodeID(n), 1)
		}
	}
	width := max(d.widest*d.gapX, 200)
	foot := d.top + (d.deep+1.3)*gapY
	nvs := d.s.Of(topo.NVS)
	for i, n := range nvs {
		d.at[n] = place{width * (float64(i) + 0.5) / float64(len(nvs)), 30 + foot, true}
	}
	d.height = d.top + (d.deep+1)*gapY
	if len(nvs) > 0 {
		d.height = 60 + foot
	}
	if len(d.loads) == 0 {
		d.height += keyHeight
	}
	d.Add(`<svg viewBox="0 0 %g %g" style="min-width:%gpx;max-width:%gpx" role="img" aria-label="topology">`,
		width, d.height, width, width*1.35)
	d.edges()
	d.routeLayers(channels)
	for n := range d.s.Nodes {
		d.node(topo.NodeID(n))
	}
	d.kinds(d.height - 12)
	d.WriteString(`</svg>`)
	return markup(d.String())
}

// tree places a node and what hangs below it on PCI.
func (d *drawing) tree(n topo.NodeID, depth float64) {
	d.at[n] = place{0, 30 + d.top + depth*gapY, true}
	d.deep = max(d.deep, depth)
	first, last, children := 0.0, 0.0, 0
	for _, l := range d.s.Nodes[n].Links {
		link := &d.s.Links[l]
		k := d.s.Nodes[link.To].Kind
		down := link.Kind == topo.LinkPCI || link.Kind == topo.LinkNET || link.Kind == topo.LinkC2C ||
			d.s.OnDevice(l)
		if !down || d.at[link.To].set || k == topo.CPU || k == topo.NVS {
			continue
		}
		d.tree(link.To, depth+1)
		x := d.at[link.To].x
		if children == 0 {
			first = x
		}
		last = x
		children++
	}
	if children == 0 {
		d.at[n].x = (d.next + 0.5) * d.gapX
		d.next++
		d.widest = max(d.widest, d.next)
		return
	}
	d.at[n].x = (first + last) / 2
}

// edges draws each pair of links once, with the fuller direction's colour.
func (d *drawing) edges() {
	for i := range d.s.Links {
		l := &d.s.Links[i]
		back := slices.ContainsFunc(d.s.Nodes[l.To].Links, func(b topo.LinkID) bool {
			return d.s.Links[b].To == l.From && d.s.Links[b].Kind == l.Kind
		})
		if l.From == l.To || back && l.From > l.To || l.Kind == topo.LinkLOC &&
			!d.s.OnDevice(topo.LinkID(i)) {
			continue
		}
		a, b := d.at[l.From], d.at[l.To]
		tip := fmt.Sprintf("%s – %s: %s %.1f GB/s", d.s.Name(l.From), d.s.Name(l.To), l.Kind, l.BW)
		most := -1.0
		for _, way := range [][2]topo.NodeID{{l.From, l.To}, {l.To, l.From}} {
			if x := d.loads[fmt.Sprintf("%s %s→%s", d.page.Host, d.s.Short(way[0]), d.s.Short(way[1]))]; x !=
				nil {
				part := share(x, d.page.Elapsed)
				most = max(most, part)
				tip += fmt.Sprintf("; %s→%s %d B, busy %.0f %% of the time at least", d.s.Short(way[0]),
					d.s.Short(way[1]), x.Bytes, 100*part)
			}
		}
		style := `class="link idle"`
		if len(d.loads) == 0 { // a machine without an operation
			style = fmt.Sprintf(`class="link %s" stroke-width="%.1f"`, linkClass[l.Kind],
				d.widthOf(float64(l.BW)))
			d.note(l)
		}
		if most >= 0 {
			style = fmt.Sprintf(`class="link l%d" stroke-width="%.1f"`, loadStep(most), loadWidth(most))
		}
		shape := fmt.Sprintf("M%.1f %.1fL%.1f %.1f", a.x, a.y, b.x, b.y)
		if a.y == b.y { // side by side: an arc below GPUs, above CPUs
			shape = fmt.Sprintf("M%.1f %.1fQ%.1f %.1f %.1f %.1f", a.x, a.y, (a.x+b.x)/2,
				a.y+bow(a, b, l.Kind), b.x, b.y)
		}
		d.Add(`<path %s fill="none" d="%s"><title>%s</title></path>`, style, shape, svg.Escape(tip))
	}
}

var kindClass = [topo.NumNodeKinds]string{topo.GPU: "gpu", topo.PCI: "pci", topo.NVS: "nvs", topo.CPU: "cpu",
	topo.NIC: "nic", topo.NET: "net", topo.GIN: "net", topo.DEV: "gpu"}

func (d *drawing) node(id topo.NodeID) {
	n, at := &d.s.Nodes[id], d.at[id]
	w, label, tip := d.box, svg.Short(d.s.Short(id), mostName), d.s.Name(id)
	switch n.Kind {
	case topo.GPU:
		tip += fmt.Sprintf(", rank %d, sm_%d, %s", n.GPU.Rank, n.GPU.SM, n.GPU.BusID)
	case topo.NET:
		tip += fmt.Sprintf(", %s, %.1f GB/s", n.Net.Name, n.Net.BW)
	case topo.NVS:
		w = switches
	}
	d.Add(`<g class="node %s"><rect x="%.1f" y="%.1f" width="%g" height="24" rx="5"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text><title>%s</title></g>`,
		kindClass[n.Kind], at.x-w/2, at.y-12, w, at.x, at.y+4, svg.Escape(label), svg.Escape(tip))
}
