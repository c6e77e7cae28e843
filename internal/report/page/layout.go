package page

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/report/html"
)

// layout writes the page.
type layout struct {
	*Page
	strings.Builder
	critical []phase
	hasBest  bool
}

// raw writes markup; arguments are numbers, or markup themselves.
func (l *layout) raw(format string, args ...any) { fmt.Fprintf(l, format, args...) }

// text escapes words.
func text(s string) string { return html.Text(s) }

func bandwidth(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

// Bytes is the file.
func (p *Page) Bytes() ([]byte, error) {
	var out bytes.Buffer
	err := Write(&out, p)
	return out.Bytes(), err
}

// Write writes the file.
func Write(w io.Writer, p *Page) error {
	l := &layout{Page: p, critical: critical(p.Timeline), hasBest: slices.ContainsFunc(p.Points, func(x Point) bool { return x.Best != "" })}
	channels := routes(p)
	inputs, chips, chosen := buttons(channels)
	l.head(chosen)
	l.curve()
	l.points()
	if drawn := heat(p.Points, p.Rivals); drawn != "" {
		l.raw(`<h2 id="choices">Who wins at which size</h2><p>Time by NCCL's cost model against the best of a size: blue is best (marked), yellow three times, red ten times as slow; empty is off.</p><div class="wide">%s</div>`, drawn)
	}
	l.raw("\n")
	l.picture(picture(p, channels), inputs, chips)
	l.raw("\n\n")
	l.loads()
	l.raw("\n")
	c := circles(p.Rings, p.Trees, p.NodeOf)
	if c.Rings != "" {
		l.raw(`<h2 id="rings">Rings</h2><p>Ranks in order on a circle, one colour a node (of many ranks the nodes); red hops leave the node.</p><div class="rings">%s</div>`, c.Rings)
	}
	l.raw("\n")
	if c.Trees != "" {
		l.raw(`<h2 id="trees">Trees</h2><p>Each rank and the one above it; the root has a border.</p><div class="rings">%s</div>`, c.Trees)
	}
	l.raw("\n")
	l.timeline()
	l.raw("\n")
	if paths := matrix(p.System); paths != "" {
		l.raw(`<h2 id="paths">Paths</h2><p>From each row to each column: kind of path and GB/s.</p><div class="wide">%s</div>`, paths)
	} else if p.Matrix != "" {
		l.raw(`<h2 id="paths">Paths</h2><details><summary>as text</summary><pre>%s</pre></details>`, text(p.Matrix))
	}
	l.raw("\n")
	l.settings()
	l.raw("\n</body>\n</html>\n")
	_, err := io.WriteString(w, l.String())
	return err
}

func (l *layout) head(chosen string) {
	l.WriteString(html.Head(l.Title, l.Command, string(chosen), l.Facts))
	if len(l.Warnings) > 0 {
		l.raw(`<h2 id="warnings">Warnings</h2>`)
	}
	for _, w := range l.Warnings {
		l.raw(`<p class="warn">%s</p>`, text(w))
	}
	l.raw("\n")
}

func (l *layout) curve() {
	drawn := curve(l.Points, l.Measured)
	if drawn == "" {
		l.raw("\n")
		return
	}
	l.raw(`<h2 id="curve">Bus bandwidth</h2>
<p class="key"><span><i style="background:var(--sim)"></i>simulated, as chosen</span>`)
	if l.hasBest {
		l.raw(`<span><i style="background:var(--best)"></i>best of all choices</span>`)
	}
	l.raw(`<span><i style="background:var(--model)"></i>NCCL's cost model</span>`)
	for i, m := range l.Measured {
		l.raw(`<span><i style="background:var(--m%d)"></i>measured: %s</span>`, i%curveColours, text(m.Name))
	}
	l.raw(`<span><i style="background:var(--limit)"></i>bound: the limiting link always busy</span></p>
<div class="wide">%s</div>
`, drawn)
}

func (l *layout) points() {
	if len(l.Points) == 0 {
		l.raw("\n")
		return
	}
	l.raw(`<h2 id="results">Results</h2><div class="wide"><table><thead><tr><th>size</th><th class="t">choice</th><th>channels</th><th>time us</th><th>busbw GB/s</th><th>model us</th><th>model GB/s</th>`)
	if l.hasBest {
		l.raw(`<th>best GB/s</th><th class="t">best choice</th>`)
	}
	for _, m := range l.Measured {
		l.raw(`<th>%s GB/s</th>`, text(m.Name))
	}
	l.raw("<th>link's limit GB/s</th><th class=\"t\">limiting link</th></tr></thead><tbody>\n")
	for i := range l.Points {
		p := &l.Points[i]
		l.raw(`<tr><td>%s</td><td class="t">%s</td><td>%d</td><td>%.2f</td><td>%s</td><td>%s</td><td>%s</td>`,
			sizeName(p.Size), text(p.Choice), p.Channels, p.TimeUs, bandwidth(p.BusBW), bandwidth(p.ModelUs), bandwidth(p.ModelBW))
		if l.hasBest {
			l.raw(`<td>%s</td><td class="t">%s</td>`, bandwidth(p.BestBW), text(p.Best))
		}
		for _, m := range l.Measured {
			l.raw(`<td>%s</td>`, measuredAt(m, p.Size))
		}
		l.raw("<td>%s</td><td class=\"t\">%s</td></tr>\n", bandwidth(p.LimitBW), text(p.Link))
	}
	l.raw("</tbody></table></div>\n")
}

func (l *layout) picture(drawn, inputs, chips markup) {
	if drawn == "" {
		return
	}
	l.raw(`<h2 id="topology">Topology and load</h2><p>The first node, as NCCL sees it. A link's colour is the share of the operation's time that its bytes need at least: blue little, red all; grey carried nothing.`)
	if chips != "" {
		l.raw(` A button shows how one channel of a graph runs over it.`)
	}
	l.raw(`</p><div class="map">%s<div class="chips">%s</div><div class="wide">%s</div></div>`, inputs, chips, drawn)
}

func (l *layout) loads() {
	all, left := loads(l.Page)
	if len(all) == 0 {
		return
	}
	open := min(loadsOpen, len(all))
	l.raw(`<h2 id="links">Fullest links</h2>`)
	l.load(all[:open])
	if more := all[open:]; len(more) > 0 {
		l.raw(`<details><summary>%d more`, len(more))
		if left > 0 {
			l.raw(`, and %d not shown`, left)
		}
		l.raw(`</summary>`)
		l.load(more)
		l.raw(`</details>`)
	}
}

func (l *layout) load(list []load) {
	l.raw("<div class=\"wide\"><table><thead><tr><th class=\"t\">link</th><th>bytes</th><th>GB/s</th><th>busy at least</th><th class=\"t\"></th></tr></thead><tbody>\n")
	for _, x := range list {
		l.raw("<tr><td class=\"t\">%s</td><td>%s</td><td>%s</td><td>%.1f %%</td><td class=\"t\"><div class=\"bar\"><div style=\"width:%.1f%%;background:%s\"></div></div></td></tr>\n",
			text(x.Name), text(x.Bytes), bandwidth(x.Capacity), x.Percent, x.Percent, x.Colour)
	}
	l.raw("</tbody></table></div>")
}

func (l *layout) timeline() {
	drawn := timeline(l.Timeline)
	if drawn == "" {
		return
	}
	l.raw("<h2 id=\"timeline\">One operation of the last size</h2>\n")
	below := ""
	if len(l.critical) > 0 {
		below = ", below the critical path"
		l.raw("<p>The critical path is what the end waited for: each step began when the one before it was done.</p><div class=\"wide\"><table><thead><tr><th class=\"t\">on the critical path</th><th>steps</th><th>us</th><th>share</th><th class=\"t\"></th></tr></thead><tbody>\n")
		for _, c := range l.critical {
			l.raw("<tr><td class=\"t\">%s</td><td>%d</td><td>%.2f</td><td>%.1f %%</td><td class=\"t\"><div class=\"bar\"><div style=\"width:%.1f%%;background:var(--%s)\"></div></div></td></tr>\n",
				text(c.Name), c.Steps, c.Us, c.Percent, c.Percent, c.Class)
		}
		l.raw("</tbody></table></div>")
	}
	l.raw(`
<p>The first ranks' tracks%s:</p>
<p class="key"><span><i class="b" style="background:var(--w1)"></i>sending</span><span><i style="background:var(--w2)"></i>waiting for data</span><span><i style="background:var(--w4)"></i>waiting for the peer's buffer</span><span><i style="background:var(--w5)"></i>flush</span><span><i style="background:var(--w6)"></i>kernel reads</span><span><i style="background:var(--w7)"></i>kernel</span><span><i style="background:var(--w0)"></i>operation, calls</span></p>
<div class="wide">%s</div>`, below, drawn)
}

func (l *layout) settings() {
	if len(l.Settings) == 0 {
		return
	}
	l.raw("<h2 id=\"settings\">Settings in force</h2><div class=\"wide\"><table><thead><tr><th class=\"t\">variable</th><th class=\"t\">value</th><th class=\"t\">from</th><th class=\"t\">effect here</th></tr></thead><tbody>\n")
	for _, s := range l.Settings {
		l.raw("<tr><td class=\"t\"><code>%s</code></td><td class=\"t\"><code>%s</code></td><td class=\"t\">%s</td><td class=\"t\">%s</td></tr>\n",
			text(s.Name), text(s.Value), text(s.Origin), text(s.Effect))
	}
	l.raw("</tbody></table></div>")
}
