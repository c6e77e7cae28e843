package page

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/explain"
)

// why shows, for some sizes, what NCCL takes, every rival, and why it is not taken.
func (l *layout) why() {
	if len(l.Why) == 0 {
		return
	}
	l.Section("why", "Why this choice")
	l.Raw("<p>NCCL's cost model at some of the sizes: what it takes, its rivals by time, and what switches " +
		"the others off. A setting would change that; the source is NCCL's.</p>\n")
	for i, r := range l.Why {
		open := ""
		if i == len(l.Why)-1 {
			open = " open"
		}
		l.Raw("<details%s><summary>%s: %s</summary>\n", open, sizeName(r.Size), text(taken(r)))
		if len(r.Derivation) > 0 {
			l.Raw("<p>Bandwidth:")
			for i, s := range r.Derivation {
				l.Raw(" %.4g GB/s: %s%s", s.GBps, text(s.What),
					map[bool]string{true: ".", false: ";"}[i == len(r.Derivation)-1])
			}
			l.Raw("</p>\n")
		}
		l.WriteString(wide("Rivals at "+sizeName(r.Size), string(rivals(r))))
		l.Raw("</details>\n")
	}
}

func taken(r *explain.Report) string {
	c := r.Choice
	if c == nil {
		return "no choice. " + r.Note
	}
	return fmt.Sprintf("%s with %s, %.2f us: %.2f us of latency, then %.4g GB/s", c.Algo, c.Proto, c.TimeUs,
		c.LatencyUs, c.BandwidthGBps)
}

// rivals is the table of one size; protocols that are off for one reason are one row.
func rivals(r *explain.Report) markup {
	var t chart.Drawing
	t.WriteString(
		`<table><thead><tr><th class="t">algorithm</th><th class="t">protocol</th><th>time us</th><th>slower</th><th>latency us</th><th>GB/s</th><th class="t">why not</th></tr></thead><tbody>`)
	if r.Choice != nil {
		timed(&t, r.Choice, ` class="won"`, "taken")
	}
	for i := 0; i < len(r.Rivals); i++ {
		c := r.Rivals[i]
		if c.Available {
			timed(&t, &c, "", "slower")
			continue
		}
		for i+1 < len(r.Rivals) && r.Rivals[i+1].Algo == c.Algo && slices.Equal(r.Rivals[i+1].Off, c.Off) {
			i++
			c.Proto += ", " + r.Rivals[i].Proto
		}
		t.Add(`<tr><td class="t">%s</td><td class="t">%s</td><td class="t why" colspan="5">off: `,
			text(c.Algo), text(c.Proto))
		for k, o := range c.Off {
			if k > 0 {
				t.WriteString("; and ")
			}
			t.Add("%s", text(o.String()))
			if o.Source != "" {
				t.Add(" (%s)", text(o.Source))
			}
		}
		t.WriteString("</td></tr>\n")
	}
	t.WriteString("</tbody></table>")
	return markup(t.String())
}

func timed(s *chart.Drawing, c *explain.Cell, class, why string) {
	slower := "–"
	if c.Slower > 0 {
		slower = fmt.Sprintf("×%.2f", c.Slower)
	}
	s.Add("<tr%s><td class=\"t\">%s</td><td "+
		"class=\"t\">%s</td><td>%.2f</td><td>%s</td><td>%.2f</td><td>%.4g</td><td class=\"t "+
		"why\">%s</td></tr>\n",
		class, text(c.Algo), text(c.Proto), c.TimeUs, slower, c.LatencyUs, c.BandwidthGBps, why)
}
