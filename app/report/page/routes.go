package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// route is a channel as it runs over the drawn System.
type route struct {
	Key  string // of the button that shows it
	Name string
	hops []hop
}

// hop is one transfer of a channel.
type hop struct {
	from, to topo.NodeID
	both     bool // data flows in both directions
	bw       float64
}

// graphNames are the kinds of channels that are drawn.
var graphNames = [search.NumGraphs]string{
	search.RingID: "ring", search.TreeID: "tree", search.NVLSID: "NVLS",
	search.CollNetChainID: "CollNet chain", search.CollNetDirectID: "CollNet direct",
}

// routesShown bounds the channels of a graph that are drawn; tipHops those with
// a hint for each hop.
const (
	routesShown = 12
	tipHops     = 40
)

// routes lists the channels of every graph that has some.
func routes(p *page) []route {
	if p.System == nil {
		return nil
	}
	var out []route
	for id, g := range p.Graphs {
		if g == nil || graphNames[id] == "" {
			continue
		}
		for c := range min(g.NChannels, len(g.Intra), routesShown) {
			r := route{Key: fmt.Sprintf("r%d-%d", id, c), Name: fmt.Sprintf("%s %d", graphNames[id], c)}
			r.hops = hopsOf(p.System, g, c)
			out = append(out, r)
		}
	}
	return out
}

// hopsOf lists a channel's transfers on the host: the net it comes in by, GPU
// to GPU, and the net it leaves by.
func hopsOf(s *topo.System, g *search.Graph, c int) []hop {
	var gpus []topo.NodeID
	for _, rank := range g.Intra[c] {
		for _, n := range s.Of(topo.GPU) {
			if s.Nodes[n].GPU.Rank == rank {
				gpus = append(gpus, n)
			}
		}
	}
	if len(gpus) == 0 {
		return nil
	}
	nets := [2]topo.NodeID{topo.None, topo.None}
	for _, n := range s.Of(topo.NET) {
		for i := range nets {
			if s.Inter && c < len(g.Inter) && s.Nodes[n].Ident == g.Inter[c][i] {
				nets[i] = n
			}
		}
	}
	intra, inter := float64(g.BWIntra), float64(g.BWInter)
	wired := nets[0] != topo.None && nets[1] != topo.None
	var out []hop
	last := len(gpus) - 1
	switch g.Pattern {
	case search.NVLSPattern, search.CollNetDirect:
		for _, n := range s.Of(topo.GPU) {
			if nvs := s.Of(topo.NVS); len(nvs) > 0 {
				out = append(out, hop{n, nvs[0], true, intra})
			}
		}
		if wired {
			out = append(out, hop{gpus[0], nets[0], true, inter})
		}
		return out
	case search.RingPattern:
		if wired {
			out = append(out, hop{nets[0], gpus[0], false, inter})
		}
		for i := range last {
			out = append(out, hop{gpus[i], gpus[i+1], false, intra})
		}
		if wired {
			return append(out, hop{gpus[last], nets[1], false, inter})
		}
		return append(out, hop{gpus[last], gpus[0], false, intra})
	}
	for i := range last {
		out = append(out, hop{gpus[i], gpus[i+1], true, intra})
	}
	if wired {
		out = append(out, hop{gpus[0], nets[0], true, inter})
		if second := min(1, last); g.Pattern != search.TreePattern { // shared by two GPUs (graph.h:100-102)
			out = append(out, hop{gpus[second], nets[1], true, inter})
		}
	}
	return out
}

// routeLayers draws every channel over the links it takes, hidden until its
// button is pressed.
func (d *drawing) routeLayers(all []route) {
	for _, r := range all {
		d.Add(`<g class="route" id="g-%s">`, r.Key)
		var whole strings.Builder
		for i, h := range r.hops {
			shape := d.along(h)
			if len(r.hops) > tipHops {
				whole.WriteString(shape)
				continue
			}
			word := "→"
			if h.both {
				word = "↔"
			}
			path := d.s.Path(h.from, h.to)
			d.Add(`<path d="%s"><title>%s, hop %d: %s %s %s, %.4g GB/s over %s</title></path>`, shape,
				chart.EscapeXML(r.Name), i+1,
				chart.EscapeXML(d.s.Short(h.from)), word, chart.EscapeXML(d.s.Short(h.to)), h.bw, path.Kind)
			if !h.both {
				d.tip(&path)
			}
		}
		if whole.Len() > 0 {
			d.Add(`<path d="%s"><title>%s, %d hops</title></path>`, whole.String(), chart.EscapeXML(r.Name), len(r.hops))
		}
		d.WriteString(`</g>`)
	}
}

// tip draws the arrow of a hop on the last of its links.
func (d *drawing) tip(path *topo.Path) {
	for i := len(path.Links) - 1; i >= 0; i-- {
		l := &d.s.Links[path.Links[i]]
		if line := d.Between(l.From, l.To); line != nil {
			at := line.Along()
			a, b := at[len(at)-2], at[len(at)-1]
			d.Add(`<path class="tip" d="%s"/>`, head(a[0], a[1], b[0], b[1], 1))
			return
		}
	}
}

// along is the path of a hop over the drawn links, a little to the right of each
// in the direction of travel, so that both directions can be seen.
func (d *drawing) along(h hop) string {
	const aside = 3.0
	var b strings.Builder
	for _, l := range d.s.Path(h.from, h.to).Links {
		line := d.Between(d.s.Links[l].From, d.s.Links[l].To)
		if line == nil { // from a NIC to the port that is drawn
			continue
		}
		from, to := line.Points[0], line.Points[len(line.Points)-1]
		dx, dy := to[0]-from[0], to[1]-from[1]
		by := BoxPoint{-dy / math.Hypot(dx, dy) * aside, dx / math.Hypot(dx, dy) * aside}
		if h.both {
			by = BoxPoint{}
		}
		path := line.Path(by)
		if b.Len() > 0 { // on from the device before
			path = "L" + path[1:]
		}
		b.WriteString(path)
	}
	return b.String()
}

// buttons choose which channel is shown, without a script: each is a radio
// button whose state the style sheet follows.
func buttons(all []route) (inputs, labels markup, rules string) {
	if len(all) == 0 {
		return "", "", ""
	}
	var in, lab, css chart.Drawing
	in.Add(`<input type="radio" name="route" id="r-load" checked>`)
	lab.Add(`<label for="r-load">load</label>`)
	for _, r := range all {
		in.Add(`<input type="radio" name="route" id="%s">`, r.Key)
		lab.Add(`<label for="%s">%s</label>`, r.Key, chart.EscapeXML(r.Name))
		css.Add("#%[1]s:checked~.wide #g-%[1]s{display:inline}#%[1]s:checked~.chips "+
			"label[for=%[1]s]{background:var(--alt);color:var(--on)}#%[1]s:focus-visible~.chips "+
			"label[for=%[1]s]{outline:2px solid var(--sim);outline-offset:2px}", r.Key)
	}
	css.Add("#r-load:not(:checked)~.wide .link{opacity:.3}#r-load:checked~.chips " +
		"label[for=r-load]{background:var(--alt);color:var(--on)}#r-load:focus-visible~.chips " +
		"label[for=r-load]{outline:2px solid var(--sim);outline-offset:2px}")
	return markup(in.String()), markup(lab.String()), string(css.String())
}
