package page

import (
	"fmt"

	"github.com/simccl/simccl/app/report/chart"
)

// worthwhile is the least gain that is advised, as for the command advise.
const worthwhile = 1.03

// gain is a run of sizes at which another choice than NCCL's is faster.
type gain struct {
	first, last *point
	setting     string
	least, most float64 // time as chosen over the best
	sizes       int
}

// gains lists them, the largest gain of each with its setting.
func gains(points []point) (out []gain) {
	open := false
	for i := range points {
		p := &points[i]
		g := p.regret()
		if g < worthwhile || p.Setting == "" {
			open = false
			continue
		}
		if n := len(out) - 1; open && out[n].setting == p.Setting {
			out[n].last, out[n].least, out[n].most, out[n].sizes = p, min(out[n].least, g),
				max(out[n].most, g), out[n].sizes+1
			continue
		}
		out, open = append(out, gain{p, p, p.Setting, g, g, 1}), true
	}
	return out
}

// regret is the time of NCCL's choice over that of the best; 0: not known.
func (p *point) regret() float64 {
	if p.BestUs <= 0 {
		return 0
	}
	return p.TimeUs / p.BestUs
}

func (g *gain) at() string {
	if g.first == g.last {
		return sizeName(g.first.Size)
	}
	return sizeName(g.first.Size) + " to " + sizeName(g.last.Size)
}

func (g *gain) faster() string {
	if a, b := fmt.Sprintf("%.0f", 100*(g.least-1)), fmt.Sprintf("%.0f", 100*(g.most-1)); a != b {
		return a + " to " + b + " %"
	}
	return fmt.Sprintf("%.0f %%", 100*(g.most-1))
}

// latencies is up to which size the time is mostly latency.
const latencies = 64 << 10

// summary is the top of the page: the answer, and a figure for each question.
func summary(p *page) (answer string, tiles []tile) {
	if len(p.Points) == 0 {
		return "", nil
	}
	peak, least := &p.Points[0], &p.Points[0]
	for i := range p.Points {
		if x := &p.Points[i]; x.BusBW > peak.BusBW {
			peak = x
		} else if x.Size < least.Size {
			least = x
		}
	}
	last := &p.Points[len(p.Points)-1]
	answer = fmt.Sprintf("%.2f us at %s", least.TimeUs, sizeName(least.Size))
	if peak.BusBW > 0 {
		band := ""
		if peak.Least.BusBW > 0 && peak.Most.BusBW > 1.01*peak.Least.BusBW {
			band = fmt.Sprintf(" (%.1f to %.1f by the draw of hashed routes)", peak.Least.BusBW,
				peak.Most.BusBW)
		}
		answer = fmt.Sprintf("busbw reaches %.1f GB/s%s at %s; %s", peak.BusBW, band, sizeName(peak.Size),
			answer)
		tiles = append(tiles, tile{Name: "Peak busbw", Value: fmt.Sprintf("%.1f GB/s", peak.BusBW),
			Note: "at " + sizeName(peak.Size) + " with " + peak.Choice})
	}
	name := "Latency"
	if least.Size > latencies {
		name = "Time of the least size"
	}
	tiles = append(tiles, tile{Name: name, Value: fmt.Sprintf("%.2f us", least.TimeUs), Note: "at " +
		sizeName(least.Size) + " with " + least.Choice})
	if t, ok := limiting(p, last); ok {
		tiles = append(tiles, t)
	}
	return answer, append(tiles, regretTile(p), adviceTile(p))
}

// limiting is the tile of the fullest link at the last size.
func limiting(p *page, last *point) (tile, bool) {
	if all, _ := loads(p.Links, p.Elapsed); len(all) > 0 {
		x := all[0]
		note := fmt.Sprintf("its bytes need %.0f %% of the time at %s", x.Percent, sizeName(last.Size))
		name := x.Name
		if x.Count > 1 {
			name = fmt.Sprintf("%d × %s", x.Count, name)
		}
		return tile{Name: "Limiting link", Value: name, Note: note}, true
	}
	if last.Link == "" || last.Link == "-" {
		return tile{}, false
	}
	return tile{Name: "Limiting link", Value: last.Link, Note: "at " + sizeName(last.Size)}, true
}

func regretTile(p *page) tile {
	t := tile{Name: "What NCCL's choice costs", Value: "not simulated", Note: p.NoBest, Alt: true}
	var worst *point
	for i := range p.Points {
		if x := &p.Points[i]; x.regret() > 0 && (worst == nil || x.regret() > worst.regret()) {
			worst = x
		}
	}
	switch {
	case worst == nil:
		return t
	case worst.regret() < 1.0005:
		t.Value, t.Note = "nothing", "no other algorithm or protocol is faster at any of the sizes"
	default:
		t.Value = fmt.Sprintf("×%.2f at %s", worst.regret(), sizeName(worst.Size))
		t.Note = fmt.Sprintf("%s: %.2f us; %s: %.2f us", worst.Choice, worst.TimeUs, worst.Best, worst.BestUs)
	}
	return t
}

func adviceTile(p *page) tile {
	t := tile{Name: "Advice", Alt: true}
	all := gains(p.Points)
	switch {
	case p.NoBest != "":
		t.Value, t.Note = "none", "other choices were not simulated; advise tries settings"
	case len(all) == 0:
		t.Value, t.Note = "keep the defaults",
			"no algorithm and protocol gains 3 %; advise tries other settings"
	default:
		best := &all[0]
		for i := range all {
			if all[i].most > best.most {
				best = &all[i]
			}
		}
		t.Value, t.Code = best.faster()+" faster at "+best.at(), best.setting
		if len(all) > 1 {
			t.Note = fmt.Sprintf("and %d more, see Advice", len(all)-1)
		}
	}
	return t
}

// advice lists the gains, and what a setting means for other sizes.
func (l *layout) advice() {
	all := gains(l.Points)
	if len(all) == 0 {
		return
	}
	l.Section("advice", "Advice")
	l.Raw("<p>Algorithms and protocols that are at least 3 %% faster than NCCL's choice, as simulated. A " +
		"variable holds at every size of the job and may cost time at others; a tuner file takes the best " +
		"at each size: <code>simccl advise … --write-tuner FILE</code>.</p>\n")
	var t chart.Drawing
	t.WriteString(
		`<table><thead><tr><th class="t">sizes</th><th class="t">setting</th><th>faster by</th><th>us now</th><th>us then</th></tr></thead><tbody>`)
	for i := range all {
		g := &all[i]
		t.Add(`<tr><td class="t">%s</td><td class="t"><code>%s</code></td><td>%s</td><td>%s</td><td>%s</td></tr>`, g.at(), text(g.setting), g.faster(),
			span(g, func(p *point) float64 { return p.TimeUs }),
			span(g, func(p *point) float64 { return p.BestUs }))
	}
	t.WriteString(`</tbody></table>`)
	l.WriteString(wide("Advice", t.String()))
}

// span is a value at the first and the last size of a gain.
func span(g *gain, of func(*point) float64) string {
	if g.first == g.last {
		return fmt.Sprintf("%.2f", of(g.first))
	}
	return fmt.Sprintf("%.2f – %.2f", of(g.first), of(g.last))
}
