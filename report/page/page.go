package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Page is all that a report shows. Empty parts are left out.
type Page struct {
	Title    string
	Command  string
	Facts    []Fact
	Points   []Point
	Rivals   []Rival // rows of the cost map, over the sizes of Points
	System   *topo.System
	Host     string          // whose links are drawn: "node0"
	Links    []exec.LinkLoad // of one operation of the last size
	Elapsed  units.Time      // of it
	Rings    []Ring
	NodeOf   []int32 // rank → node, for the rings' colours
	Matrix   string  // path matrix as text
	Timeline *trace.Memory
	Settings []Setting
	Warnings []string
}

// Fact is a line of the summary.
type Fact struct{ Name, Value string }

// Point is one size of the sweep.
type Point struct {
	Size             units.Bytes
	TimeUs, BusBW    float64 // simulated
	ModelUs, ModelBW float64 // by NCCL's cost model; 0: it has none
	LimitBW          float64 // were the limiting link never idle; 0: unknown
	Choice           string
	Channels         int
	Link             string
}

// Rival is one algorithm and protocol with its predicted times, 0 where off.
type Rival struct {
	Name  string
	Times []float64 // microseconds, by Point
}

// Ring is a channel's ring in rank order.
type Ring struct {
	Channel int
	Order   []int32
}

// Setting is a variable in force.
type Setting struct{ Name, Value, Origin, Effect string }

//go:embed page.html
var skeleton string

var layout = template.Must(template.New("page").Funcs(template.FuncMap{
	"us": func(v float64) string { return fmt.Sprintf("%.2f", v) },
	"bw": func(v float64) string {
		if v == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", v)
	},
	"size": func(b units.Bytes) string { return sizeName(b) },
}).Parse(skeleton))

// Write writes the file.
func Write(w io.Writer, p *Page) error {
	d := struct {
		*Page
		Curve, Picture, Heat, Timing, Circles template.HTML
		Loads                                 []load
		LoadsLeft                             int
	}{Page: p}
	d.Curve = curve(p.Points)
	d.Picture = picture(p)
	d.Heat = heat(p.Points, p.Rivals)
	d.Timing = timeline(p.Timeline)
	d.Circles = circles(p.Rings, p.NodeOf)
	d.Loads, d.LoadsLeft = loads(p)
	return layout.Execute(w, d)
}

// sizeName prints a size with the largest binary unit that divides it.
func sizeName(b units.Bytes) string {
	for _, u := range []struct {
		by   units.Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b >= u.by && b%u.by == 0 {
			return fmt.Sprintf("%d %s", b/u.by, u.name)
		}
	}
	return fmt.Sprintf("%d B", b)
}

// svg collects a drawing.
type svg struct{ strings.Builder }

func (s *svg) add(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// html closes the drawing; everything in it was escaped where it was put in.
func (s *svg) html() template.HTML { return template.HTML(s.String()) }

func esc(s string) string { return template.HTMLEscapeString(s) }

// heatColour runs from blue over yellow to red for 0 to 1.
func heatColour(x float64) string {
	x = max(0, min(1, x))
	return fmt.Sprintf("hsl(%.0f 75%% 48%%)", 210-210*x)
}
