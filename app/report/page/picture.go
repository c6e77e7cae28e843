package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/topo"
)

// drawing draws one System as package machine lays it out.
type drawing struct {
	chart.Drawing
	*machineLayout
	s     *topo.System
	loads map[string]*exec.LinkLoad
	page  *page
	drawn [kindsOfLinks][]float64 // bandwidths of links of a kind, GB/s, of a machine without loads
}

// letter is the width of a character of 12 px.
const letter = 7.4

// Links of a drawing by their load: classes l0 to l3 of the style, and the width.
const loadSteps = 4

func loadStep(share float64) int { return int(max(0, min(loadSteps-1, share*loadSteps))) }

func loadWidth(share float64) float64 { return 1.5 + 4.5*max(0, min(1, share)) }

// linkClass are the colours of links without loads, by kind; their bandwidths are listed below.
var linkClass = [kindsOfLinks]string{topo.LinkNVL: "nvl", topo.LinkC2C: "c2c", topo.LinkPCI: "pcie",
	topo.LinkSYS: "sys", topo.LinkNET: "wire"}

const kindsOfLinks = int(topo.LinkNET) + 1

// note keeps a link's bandwidth for the key.
func (d *drawing) note(l *topo.Link) {
	if bw := float64(l.BW); linkClass[l.Kind] != "" && !slices.Contains(d.drawn[l.Kind], bw) {
		d.drawn[l.Kind] = append(d.drawn[l.Kind], bw)
	}
}

// kinds is the key of a machine without loads below it: each kind of link with its bandwidths. It returns the
// height with it.
func (d *drawing) kinds(height float64) float64 {
	x, y := d.Width, height
	for k, bws := range d.drawn {
		if len(bws) == 0 || len(d.loads) > 0 {
			continue
		}
		slices.Sort(bws)
		var words []string
		for _, bw := range bws {
			words = append(words, strconv.FormatFloat(bw, 'g', 4, 64))
		}
		label := fmt.Sprintf("%s %s GB/s", topo.LinkKind(k), strings.Join(words, ", "))
		long := 54 + letter*float64(len([]rune(label)))
		if x+long > d.Width {
			x, y = 8, y+20
		}
		d.Add(`<path class="link %s" stroke-width="3" d="M%.0f %.0fh24"/><text x="%.0f" y="%.0f">%s</text>`,
			linkClass[k], x, y-4, x+30, y, chart.EscapeXML(label))
		x += long
	}
	if y > height {
		y += 10
	}
	return y
}

// loadKey names the steps.
func loadKey() markup {
	var s chart.Drawing
	for i := range loadSteps {
		s.Add(`<span><svg viewBox="0 0 30 12" aria-hidden="true"><path class="l%d" stroke-width="%.1f" d="M0 6H30"/></svg>%d to %d %%</span>`, i, loadWidth((float64(i)+.5)/loadSteps), 100*i/loadSteps, 100*(i+1)/loadSteps)
	}
	s.WriteString(
		`<span><svg viewBox="0 0 30 12" aria-hidden="true"><path class="idle" d="M0 6H30"/></svg>nothing</span>`)
	return markup(s.String())
}

func picture(p *page, channels []route) markup {
	if p.System == nil {
		return ""
	}
	d := &drawing{machineLayout: LayOut(p.System), s: p.System, page: p}
	d.loads, _ = Loads(p.System, p.Host, p.Links, p.Folded)
	d.edges()
	d.routeLayers(channels)
	for n := range d.s.Nodes {
		d.node(topo.NodeID(n))
	}
	height := d.kinds(d.Height)
	body := d.String()
	d.Reset()
	d.Add(`<svg viewBox="0 0 %g %g" style="min-width:%gpx;max-width:%gpx" role="img" aria-label="topology">`,
		d.Width, height, d.Width, d.Width*1.35)
	d.WriteString(body + `</svg>`)
	return markup(d.String())
}

// edges draws each line with the fuller direction's colour.
func (d *drawing) edges() {
	for i := range d.Lines {
		line := &d.Lines[i]
		most, tips, best := -1.0, []string{}, line.Links[0]
		for _, id := range line.Links {
			l := &d.s.Links[id]
			if l.BW > d.s.Links[best].BW {
				best = id
			}
			from, to := d.s.Short(l.From), d.s.Short(l.To)
			tip := fmt.Sprintf("%s → %s: %s %.1f GB/s", d.s.Name(l.From), d.s.Name(l.To), l.Kind, l.BW)
			if x := d.loads[fmt.Sprintf("%s %s→%s", d.page.Host, from, to)]; x != nil {
				part := share(x, d.page.Elapsed)
				most = max(most, part)
				tip += fmt.Sprintf(", %d B, busy %.0f %% of the time at least", x.Bytes, 100*part)
			}
			tips = append(tips, tip)
			d.note(l)
		}
		style := `class="link idle"`
		if l := &d.s.Links[best]; len(d.loads) == 0 { // a machine without an operation
			style = fmt.Sprintf(`class="link %s" stroke-width="%.1f"`, linkClass[l.Kind],
				1.2+0.9*math.Log2(1+max(0, float64(l.BW))/16))
		}
		if most >= 0 {
			style = fmt.Sprintf(`class="link l%d" stroke-width="%.1f"`, loadStep(most), loadWidth(most))
		}
		d.Add(`<path %s fill="none" d="%s"><title>%s</title></path>`, style, line.Path(BoxPoint{}),
			chart.EscapeXML(strings.Join(tips, "\n")))
	}
}

var kindClass = [topo.NumNodeKinds]string{topo.GPU: "gpu", topo.PCI: "pci", topo.NVS: "nvs", topo.CPU: "cpu",
	topo.NIC: "nic", topo.NET: "net", topo.GIN: "net", topo.DEV: "gpu"}

func (d *drawing) node(id topo.NodeID) {
	n, tip := &d.s.Nodes[id], d.s.Name(id)
	switch n.Kind {
	case topo.GPU:
		tip += fmt.Sprintf(", rank %d, sm_%d, %s", n.GPU.Rank, n.GPU.SM, n.GPU.BusID)
	case topo.NET:
		tip += fmt.Sprintf(", %s, %.1f GB/s", n.Net.Name, n.Net.BW)
	}
	look := ""
	if d.page.marked != nil && d.page.marked(id) {
		look, tip = ` style="stroke:var(--bad);stroke-width:4"`, tip+", suspected"
	}
	for _, b := range d.Boxes[id] {
		d.Add(`<g class="node %s"><rect x="%.1f" y="%.1f" width="%g" height="%g" rx="5"%s/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text><title>%s</title></g>`,
			kindClass[n.Kind], b.X-b.W/2, b.Y-b.H/2, b.W, b.H, look,
			b.X, b.Y+4, chart.EscapeXML(LabelOf(d.s, id)),
			chart.EscapeXML(tip))
	}
}
