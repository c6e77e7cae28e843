package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/topo"
)

// BoxPoint is a place of the drawing, in px, x to the right and y down.
type BoxPoint [2]float64

// Box is a device, or a part of an NVSwitch that lies below each row of GPUs. X and Y are its centre.
type Box struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	W float64 `json:"w"`
	H float64 `json:"h"`
}

// boxLine joins two devices: straight from point to point, or an arc, of which the second point is what it
// bends to (a quadratic Bézier curve). Links are those between the two, in both directions.
type boxLine struct {
	A, B   topo.NodeID
	Links  []topo.LinkID
	Points []BoxPoint
	Arc    bool
}

// machineLayout is a host. Boxes are by node: none of a NIC that is drawn as its only port.
type machineLayout struct {
	Width, Height float64
	Boxes         [][]Box
	Lines         []boxLine

	s      *topo.System
	port   []topo.NodeID // by node: itself, or the port as which a NIC is drawn
	column float64       // width of a column
	next   int           // column of the next leaf
	widest int
	rows   []float64 // y of each row
	row    []int     // by node: its place in rows
	band   int       // the first row of the CPUs that are placed
	last   []int     // by row: the last of its band
	leaf   []topo.NodeID
	of     map[[2]topo.NodeID]int
}

const (
	high          = 26.0 // of a box
	between       = 74.0 // of rows
	least         = 46.0 // width of a box
	gap           = 12.0 // between boxes
	machineLetter = 7.4  // width of a character of 12 px
	mostName      = 14
	// columns is where a further CPU begins new rows.
	columns = 24
	// above is the room for arcs of CPUs, below that for arcs of GPUs.
	above, below = 34.0, 64.0
)

// LabelOf is the name in a device's box.
func LabelOf(s *topo.System, n topo.NodeID) string {
	switch s.Nodes[n].Kind {
	case topo.NVS:
		return "NVSwitch"
	case topo.PCI:
		return "PCIe"
	}
	return chart.Short(s.Short(n), mostName)
}

// LayOut lays out a System.
func LayOut(s *topo.System) *machineLayout {
	n := len(s.Nodes)
	d := &machineLayout{Boxes: make([][]Box, n), s: s, port: make([]topo.NodeID, n), row: make([]int, n),
		column: least, of: map[[2]topo.NodeID]int{}}
	for i := range s.Nodes {
		id := topo.NodeID(i)
		d.port[i], d.row[i] = id, -1
		if s.Nodes[i].Kind != topo.NVS {
			d.column = max(d.column, machineLetter*float64(len([]rune(LabelOf(s, id))))+10)
		}
		var ports []topo.NodeID
		for _, l := range s.Nodes[i].Links {
			if to := s.Links[l].To; s.Nodes[i].Kind == topo.NIC && s.Links[l].Kind == topo.LinkNET {
				ports = append(ports, to)
			}
		}
		if len(ports) == 1 {
			d.port[i] = ports[0]
		}
	}
	d.column += gap
	d.place()
	d.join()
	return d
}

// place finds the boxes.
func (d *machineLayout) place() {
	peers := slices.ContainsFunc(d.s.Links, func(l topo.Link) bool {
		return l.Kind == topo.LinkNVL && d.s.Nodes[l.From].Kind != topo.NVS &&
			d.s.Nodes[l.To].Kind != topo.NVS
	})
	y, switches := high/2+2, d.s.Of(topo.NVS)
	if len(d.s.Of(topo.CPU)) > 1 {
		y += above
	}
	bars := []float64{}
	end := func() { // of the rows of some CPUs
		for r := d.band; r < len(d.rows); r++ {
			d.rows[r], d.last = y+between*float64(r-d.band), append(d.last, len(d.rows)-1)
		}
		for _, n := range d.leaf {
			if d.s.Nodes[n].Kind != topo.CPU {
				d.row[n] = len(d.rows) - 1
			}
		}
		y += between * float64(len(d.rows)-d.band-1)
		if peers {
			y += below
		}
		if len(switches) > 0 {
			y += between
			bars = append(bars, y)
		}
		y += between + above
		d.band, d.next, d.leaf = len(d.rows), 0, nil
	}
	x := make([]float64, len(d.s.Nodes))
	for _, c := range d.s.Of(topo.CPU) {
		if d.next >= columns {
			end()
		}
		d.tree(c, 0, x)
	}
	for n := range d.s.Nodes { // what hangs on no CPU
		if d.s.Nodes[n].Kind != topo.NVS && d.row[n] < 0 && d.port[n] == topo.NodeID(n) {
			d.tree(topo.NodeID(n), 1, x)
		}
	}
	end()
	d.Width, d.Height = max(float64(d.widest)*d.column, 200), y-between-above+high/2+2
	for n := range d.s.Nodes {
		if d.row[n] >= 0 {
			d.Boxes[n] = []Box{{x[n], d.rows[d.row[n]], d.column - gap, high}}
		}
	}
	if len(switches) == 1 {
		for _, y := range bars {
			d.Boxes[switches[0]] = append(d.Boxes[switches[0]], Box{d.Width / 2, y, d.Width - 20, high})
		}
		return
	}
	for i, n := range switches {
		w := d.Width / float64(len(switches))
		d.Boxes[n] = []Box{{w * (float64(i) + 0.5), bars[len(bars)-1], min(96, w-gap), high}}
	}
}

// tree places a node and what hangs below it on PCI, at a depth of its band, and returns its x.
func (d *machineLayout) tree(n topo.NodeID, depth int, x []float64) float64 {
	n = d.port[n]
	for len(d.rows) <= d.band+depth {
		d.rows = append(d.rows, 0)
	}
	d.row[n] = d.band + depth
	var xs []float64
	for _, l := range d.s.Nodes[n].Links {
		link := &d.s.Links[l]
		to := d.port[link.To]
		k := d.s.Nodes[to].Kind
		down := link.Kind == topo.LinkPCI || link.Kind == topo.LinkNET || link.Kind == topo.LinkC2C ||
			d.s.OnDevice(l)
		if !down || d.row[to] >= 0 || k == topo.CPU || k == topo.NVS {
			continue
		}
		xs = append(xs, d.tree(to, depth+1, x))
	}
	if len(xs) == 0 {
		d.leaf = append(d.leaf, n)
		xs = append(xs, (float64(d.next)+0.5)*d.column)
		d.next++
		d.widest = max(d.widest, d.next)
	}
	x[n] = (xs[0] + xs[len(xs)-1]) / 2
	return x[n]
}

// join finds the lines, one for each two devices.
func (d *machineLayout) join() {
	for i := range d.s.Links {
		l := &d.s.Links[i]
		a, b := d.port[l.From], d.port[l.To]
		if a == b || l.Kind == topo.LinkLOC && !d.s.OnDevice(topo.LinkID(i)) {
			continue
		}
		k, ok := d.of[[2]topo.NodeID{a, b}]
		if !ok {
			k = len(d.Lines)
			d.of[[2]topo.NodeID{a, b}], d.of[[2]topo.NodeID{b, a}] = k, k
			d.Lines = append(d.Lines, boxLine{A: a, B: b})
			d.draw(&d.Lines[k])
		}
		d.Lines[k].Links = append(d.Lines[k].Links, topo.LinkID(i))
	}
}

// draw finds the points of a line: as straight as the boxes allow.
func (d *machineLayout) draw(l *boxLine) {
	if d.s.Nodes[l.A].Kind == topo.NVS {
		l.A, l.B = l.B, l.A
	}
	if d.s.Nodes[l.B].Kind != topo.NVS && d.Boxes[l.A][0].Y > d.Boxes[l.B][0].Y {
		l.A, l.B = l.B, l.A
	}
	a, b := d.Boxes[l.A][0], d.Boxes[l.B][0]
	switch {
	case d.s.Nodes[l.B].Kind == topo.NVS:
		for _, bar := range d.Boxes[l.B] { // that which is next below
			if b.Y < a.Y || bar.Y > a.Y && bar.Y < b.Y {
				b = bar
			}
		}
		x := b.X
		if len(d.s.Of(topo.NVS)) == 1 {
			x = a.X
		}
		b.X = x
		l.Points = []BoxPoint{{a.X, a.Y + high/2}, {x, b.Y - high/2}}
	case a.Y == b.Y:
		room, up := above-6, -1.0
		if d.s.Nodes[l.A].Kind != topo.CPU {
			room, up = below-8, 1
		}
		c := 16 + (2*room-16)*math.Abs(b.X-a.X)/d.Width // an arc bends half as far
		l.Arc, l.Points = true, []BoxPoint{{a.X, a.Y + up*high/2}, {(a.X + b.X) / 2, a.Y + up*(high/2+c)},
			{b.X, b.Y + up*high/2}}
	default:
		l.Points = []BoxPoint{{a.X, a.Y + high/2}, {b.X, min(a.Y+between, b.Y) - high/2}, {b.X, b.Y - high/2}}
		l.Points = slices.Compact(l.Points)
	}
	if !d.clear(l) {
		d.around(l, a, b)
	}
}

// around leads a line between columns, or outside of them, where nothing is in its way.
func (d *machineLayout) around(l *boxLine, a, b Box) {
	const half = between / 2
	out, in := 1.0, -1.0 // below a, above b
	if a.Y == b.Y {
		in = 1
	}
	lanes := []float64{}
	for k := range d.widest + 1 {
		lanes = append(lanes, float64(k)*d.column)
	}
	lanes[len(lanes)-1] = d.Width
	slices.SortStableFunc(lanes, func(x, y float64) int {
		far := func(v float64) float64 { return math.Abs(v-a.X) + math.Abs(v-b.X) }
		return int(far(x) - far(y))
	})
	l.Arc = false
	for _, x := range lanes {
		l.Points = []BoxPoint{{a.X, a.Y + out*high/2}, {a.X, a.Y + out*half}, {x, a.Y + out*half},
			{x, b.Y + in*half}, {b.X, b.Y + in*half}, {b.X, b.Y + in*high/2}}
		if d.clear(l) {
			return
		}
	}
}

// clear reports whether a line crosses no box but those of its ends.
func (d *machineLayout) clear(l *boxLine) bool {
	at := l.Along()
	for n, boxes := range d.Boxes {
		if topo.NodeID(n) == l.A || topo.NodeID(n) == l.B {
			continue
		}
		for _, b := range boxes {
			for i := range at[1:] {
				if b.cut(at[i], at[i+1]) {
					return false
				}
			}
		}
	}
	return true
}

// cut reports whether a straight line runs through a box (Liang and Barsky, 1984).
func (b Box) cut(from, to BoxPoint) bool {
	lo, hi := 0.0, 1.0
	for k, half := range [2]float64{b.W / 2, b.H / 2} {
		centre := [2]float64{b.X, b.Y}[k]
		at, step := from[k]-centre, to[k]-from[k]
		if step == 0 {
			if math.Abs(at) >= half {
				return false
			}
			continue
		}
		p, q := (-half-at)/step, (half-at)/step
		lo, hi = max(lo, min(p, q)), min(hi, max(p, q))
	}
	return lo < hi
}

// Along are points of the line between which it is straight, an arc in 16 parts.
func (l *boxLine) Along() []BoxPoint {
	if !l.Arc {
		return l.Points
	}
	var out []BoxPoint
	for i := range 17 {
		t := float64(i) / 16
		var p BoxPoint
		for k := range p {
			p[k] = (1-t)*(1-t)*l.Points[0][k] + 2*t*(1-t)*l.Points[1][k] + t*t*l.Points[2][k]
		}
		out = append(out, p)
	}
	return out
}

// Path is the line as the data of an SVG path, moved by some px.
func (l *boxLine) Path(by BoxPoint) string {
	var b strings.Builder
	for i, p := range l.Points {
		letter := "L"
		switch {
		case i == 0:
			letter = "M"
		case l.Arc:
			letter = [...]string{"", "Q", " "}[i]
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", letter, p[0]+by[0], p[1]+by[1])
	}
	return b.String()
}

// Between is the line from one device to another, with its points in that order; nil where they are drawn as
// one, or not joined.
func (d *machineLayout) Between(from, to topo.NodeID) *boxLine {
	k, ok := d.of[[2]topo.NodeID{d.port[from], d.port[to]}]
	if !ok {
		return nil
	}
	l := d.Lines[k]
	if l.A != d.port[from] {
		l.A, l.B, l.Points = l.B, l.A, slices.Clone(l.Points)
		slices.Reverse(l.Points)
	}
	return &l
}
