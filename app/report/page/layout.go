package page

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
)

// layout writes the page.
type layout struct {
	*page
	doc
	critical []phase
	hasBest  bool
}

// text escapes words.
func text(s string) string { return Text(s) }

func bandwidth(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

// Bytes is the file.
func (p *page) Bytes() ([]byte, error) {
	var out bytes.Buffer
	err := p.Write(&out)
	return out.Bytes(), err
}

// Write writes the file.
func (p *page) Write(w io.Writer) error {
	l := &layout{page: p, critical: critical(p.Timeline), hasBest: slices.ContainsFunc(p.Points,
		func(x point) bool { return x.Best != "" })}
	channels := routes(p)
	inputs, chips, chosen := buttons(channels)
	l.doc.Title, l.doc.Command, l.doc.Facts, l.doc.CSS = p.Title, p.Command, p.Facts, chosen
	l.Answer, l.Tiles = summary(p)
	l.warnings()
	l.curves()
	l.points()
	l.advice()
	l.choices()
	l.why()
	l.picture(picture(p, channels), inputs, chips, p.Folded)
	l.loads()
	l.network()
	l.circleSections()
	l.timeline()
	l.paths()
	l.settings()
	_, err := io.WriteString(w, l.doc.Page())
	return err
}

func (l *layout) warnings() {
	if len(l.Warnings) == 0 {
		return
	}
	l.Section("warnings", "Warnings")
	for _, w := range l.Warnings {
		l.Raw("<p class=\"warn\">%s</p>\n", text(w))
	}
}

func (l *layout) curves() {
	bandwidths, times := curves(l.Points, l.Measured)
	if bandwidths == "" {
		return
	}
	l.Section("curve", "Bandwidth and latency")
	for _, m := range l.Measured {
		for _, note := range m.Notes {
			l.Raw("<p class=\"key\">%s: %s</p>\n", text(m.Name), text(note))
		}
	}
	l.Raw("<p class=\"key\">%s</p>\n"+
		"<div class=\"pair\"><div><h3>Bus bandwidth</h3>%s</div><div><h3>Time, both axes "+
		"logarithmic</h3>%s</div></div>\n", key(l.Points, l.Measured), bandwidths, times)
}

func (l *layout) points() {
	if len(l.Points) == 0 {
		return
	}
	l.Section("results", "Results")
	var t chart.Drawing
	t.WriteString(
		`<table><thead><tr><th>size</th><th class="t">choice</th><th>channels</th><th>time us</th><th>busbw GB/s</th><th>model us</th><th>model GB/s</th>`)
	if l.hasBest {
		t.WriteString(`<th>best us</th><th>best GB/s</th><th>NCCL / best</th><th class="t">best choice</th>`)
	}
	for _, m := range l.Measured {
		t.Add(`<th>%[1]s us</th><th>%[1]s GB/s</th>`, text(m.Name))
	}
	banded := slices.ContainsFunc(l.Points, func(p point) bool { return p.Least.BusBW > 0 })
	if banded {
		t.WriteString("<th>slowest draw GB/s</th><th>fastest draw GB/s</th>")
	}
	t.WriteString("<th>link's limit GB/s</th><th class=\"t\">limiting link</th></tr></thead><tbody>\n")
	for i := range l.Points {
		p := &l.Points[i]
		t.Add(`<tr><td>%s</td><td class="t">%s</td><td>%d</td><td>%.2f</td><td>%s</td><td>%s</td><td>%s</td>`,
			sizeName(p.Size), text(p.Choice), p.Channels, p.TimeUs, bandwidth(p.BusBW), bandwidth(p.ModelUs),
			bandwidth(p.ModelBW))
		if l.hasBest {
			regret := "–"
			if p.BestUs > 0 {
				regret = fmt.Sprintf("%.3f", p.regret())
			}
			t.Add(`<td>%s</td><td>%s</td><td>%s</td><td class="t">%s</td>`, bandwidth(p.BestUs),
				bandwidth(p.BestBW), regret, text(p.Best))
		}
		for _, m := range l.Measured {
			us, bw := measuredAt(m, p.Size)
			t.Add(`<td>%s</td><td>%s</td>`, us, bw)
		}
		if banded {
			t.Add(`<td>%s</td><td>%s</td>`, bandwidth(p.Least.BusBW), bandwidth(p.Most.BusBW))
		}
		t.Add("<td>%s</td><td class=\"t\">%s</td></tr>\n", bandwidth(p.LimitBW), text(p.Link))
	}
	t.WriteString("</tbody></table>")
	l.WriteString(wide("Results", t.String()))
	for i := range l.Points {
		p := &l.Points[i]
		if p.Least.BusBW > 0 && (p.Most.BusBW > 1.01*p.Least.BusBW || i == len(l.Points)-1) {
			l.Raw("<p>%s: %s.</p>\n", sizeName(p.Size), text(strings.Join(p.Draws, ". ")))
		}
	}
}

func (l *layout) choices() {
	drawn := heat(l.Points, l.Rivals)
	if drawn == "" {
		return
	}
	l.Section("choices", "Who wins at which size")
	l.Raw("<p>Time by NCCL's cost model against the best at a size: the darker (in dark mode the "+
		"brighter), the slower. The best has a border.</p>\n<p class=\"key\">%s</p>\n", heatKey())
	l.WriteString(wide("Who wins at which size", string(drawn)))
}

func (l *layout) picture(drawn, inputs, chips markup, folded bool) {
	if drawn == "" {
		return
	}
	l.Section("topology", "Topology and load")
	l.Raw("<p>The first node, as NCCL sees it. A link is the thicker and the stronger in colour, the " +
		"larger the share of the operation's time that its bytes need; dotted ones carried nothing. The " +
		"numbers are in the table below.")
	if folded {
		l.Raw(" Equivalent ranks were simulated once: a link of the others has the load of the fullest of " +
			"its kind.")
	}
	if chips != "" {
		l.Raw(" A button shows how one channel of a graph runs over it.")
	}
	l.Raw("</p>\n<p class=\"key\">%s</p>\n", loadKey())
	l.Raw("<div class=\"map\">%s<div class=\"chips\">%s</div>%s</div>\n", inputs, chips,
		wide("Topology", string(drawn)))
}

func (l *layout) loads() {
	all, left := loads(l.Links, l.Elapsed)
	if len(all) == 0 {
		return
	}
	open := min(loadsOpen, len(all))
	l.Section("links", "Fullest links")
	l.load("Fullest links", all[:open])
	if more := all[open:]; len(more) > 0 {
		l.Raw("<details><summary>%d more", len(more))
		if left > 0 {
			l.Raw(", and %d not shown", left)
		}
		l.Raw("</summary>")
		l.load("Further links", more)
		l.Raw("</details>\n")
	}
}

func (l *layout) load(name string, list []linkUse) {
	var t chart.Drawing
	t.WriteString("<table><thead><tr><th>links</th><th class=\"t\">link</th><th>bytes of " +
		"each</th><th>GB/s</th><th>needs at least</th><th class=\"t\">of the time</th></tr></thead><tbody>\n")
	for _, x := range list {
		t.Add("<tr><td>%d ×</td><td class=\"t\">%s</td><td>%s</td><td>%s</td><td>%.1f %%</td><td "+
			"class=\"t\"><div class=\"bar\"><div style=\"width:%.1f%%\"></div></div></td></tr>\n",
			x.Count, text(x.Name), grouped(x.Bytes), bandwidth(x.Capacity), x.Percent, min(100, x.Percent))
	}
	t.WriteString("</tbody></table>")
	l.WriteString(wide(name, t.String()))
}

func (l *layout) paths() {
	if paths := matrix(l.System); paths != "" {
		l.Section("paths", "Paths")
		l.Raw("<p>From each row to each column: kind of path and GB/s; the darker (in dark mode the "+
			"brighter), the faster.</p>\n%s", wide("Paths", string(paths)))
	} else if l.Matrix != "" {
		l.Section("paths", "Paths")
		l.Raw("<details><summary>as text</summary><pre tabindex=\"0\">%s</pre></details>\n", text(l.Matrix))
	}
}

func (l *layout) settings() {
	if len(l.Settings) == 0 {
		return
	}
	l.Section("settings", "Settings in force")
	var t chart.Drawing
	t.WriteString("<table><thead><tr><th class=\"t\">variable</th><th class=\"t\">value</th><th " +
		"class=\"t\">from</th><th class=\"t\">effect here</th></tr></thead><tbody>\n")
	for _, s := range l.Settings {
		t.Add("<tr><td class=\"t\"><code>%s</code></td><td class=\"t\"><code>%s</code></td><td "+
			"class=\"t\">%s</td><td class=\"t why\">%s</td></tr>\n",
			text(s.Name), text(s.Value), text(s.Origin), text(s.Effect))
	}
	t.WriteString("</tbody></table>")
	l.WriteString(wide("Settings", t.String()))
}
