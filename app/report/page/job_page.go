package page

import (
	"cmp"
	"fmt"
	"io"

	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/study/replay"
)

// JobPage is the data of a job's page.
type JobPage struct {
	Title, Command string
	Machine        string
	Rules, Program string // versions
	Times          string // where times are from, and how certain
	Report         *replay.Report
	Timeline       *timeline.Timeline
	Rank           func(place int) string
	Versus         []replay.Versus
}

// classes are the colours of the parts of an iteration; waiting is hatched, idle thin.
var classes = []struct{ class, name string }{{"kgreen", "compute"}, {"kblue", "exposed communication"},
	{"wait", "waiting for other ranks (hatched)"}, {"kolive", "host"}, {"off thin", "idle"}}

// short are the names of the parts in figures of one column.
var short = [...]string{"compute", "exposed", "waiting", "host", "idle"}

// css is what the page has beside the common style.
const css = ".stack { align-items: center; display: flex; height: 16px; min-width: 260px } .stack i { " +
	"display: block; height: 100% } .stack i.thin { height: 4px } .off { background: none; border-bottom: " +
	"1px dashed var(--edge); fill: none }\n" +
	".hid { opacity: .35 } td.wide2 { min-width: 320px; width: 60% }"

// shown bounds the rows of the page's tables.
const (
	ranksShown   = 64
	jobRowsShown = 30
)

type writer struct {
	doc
	p *JobPage
}

func (w *writer) raw(format string, args ...any) { w.Raw(format, args...) }

func jobText(s string) string { return Text(s) }

func ms(us float64) string { return fmt.Sprintf("%.3f", us/1000) }

// Write writes the page as one HTML file.
func (p *JobPage) Write(to io.Writer) error {
	r := p.Report
	facts := []Fact{{Name: "machine", Value: p.Machine}, {Name: "ranks", Value: fmt.Sprint(r.Ranks)},
		{Name: "host", Value: r.Host}, {Name: "fidelity", Value: r.Fidelity},
		{Name: "rules", Value: "NCCL " + p.Rules}, {Name: "simccl", Value: p.Program},
		{Name: "times", Value: p.Times}}
	w := &writer{p: p, doc: doc{Title: p.Title, Command: p.Command, CSS: css, Facts: facts}}
	w.Answer, w.Tiles = p.summary()
	w.iteration()
	w.versus()
	w.ranks()
	w.path()
	w.groups()
	w.calls()
	w.timeline()
	if len(r.Notes) > 0 {
		w.Section("notes", "Notes")
		for _, n := range r.Notes {
			w.raw("<p class=\"warn\">%s</p>\n", jobText(n))
		}
	}
	_, err := io.WriteString(to, w.Page())
	return err
}

func (w *writer) iteration() {
	r := w.p.Report
	w.Section("bounds", "What bounds an iteration")
	w.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Bounds\"><table><thead><tr><th " +
		"class=\"t\">bound</th><th>ms</th><th class=\"t\">of</th></tr></thead><tbody>\n")
	w.raw("<tr><td class=\"t\">compute</td><td>%s</td><td class=\"t\">rank %d</td></tr>\n",
		ms(r.Bounds.ComputeUs), r.Bounds.ComputeRank)
	if r.Bounds.PathUs > 0 {
		w.raw("<tr><td class=\"t\">critical path</td><td>%s</td><td class=\"t\">on an ideal "+
			"network</td></tr>\n", ms(r.Bounds.PathUs))
	}
	if r.Bounds.Link != "" {
		w.raw("<tr><td class=\"t\">busiest link</td><td>%s</td><td class=\"t\">%s</td></tr>\n",
			ms(r.Bounds.LinkUs), jobText(r.Bounds.Link))
	}
	for _, x := range r.Ideal {
		w.raw("<tr><td class=\"t\">calls of %s at no time</td><td>%s</td><td class=\"t\">%s ms less, %.1f "+
			"%%</td></tr>\n", jobText(x.Group), ms(x.IterationUs), ms(x.WonUs), 100*x.WonUs/max(r.IterationUs,
			1e-9))
	}
	w.raw("</tbody></table></div>\n")
	if len(r.Steps) > 1 {
		w.raw("<details><summary>%d iterations</summary><div class=\"wide\" tabindex=\"0\" role=\"region\" "+
			"aria-label=\"Iterations\"><table><thead><tr><th "+
			"class=\"t\">iteration</th><th>ms</th><th>recorded</th></tr></thead><tbody>\n", len(r.Steps))
		for _, s := range r.Steps {
			recorded := "–"
			if s.RecordedUs != nil {
				recorded = ms(*s.RecordedUs)
			}
			w.raw("<tr><td class=\"t\">%s</td><td>%s</td><td>%s</td></tr>\n", jobText(s.Name), ms(s.Us),
				recorded)
		}
		w.raw("</tbody></table></div></details>\n")
	}
}

func (w *writer) versus() {
	if len(w.p.Versus) == 0 {
		return
	}
	r := w.p.Report
	w.Section("vs", "Beside other options")
	w.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Options\"><table><thead><tr><th " +
		"class=\"t\">options</th><th>iteration ms</th><th>against the " +
		"first</th><th>compute</th><th>exposed</th><th>waiting</th><th>host and idle</th><th>at " +
		"least</th></tr></thead><tbody>\n")
	row := func(name string, x *replay.Report) {
		w.raw("<tr><td class=\"t\"><code>%s</code></td><td>%s</td><td>%+.1f "+
			"%%</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", jobText(name),
			ms(x.IterationUs),
			100*(x.IterationUs/max(r.IterationUs, 1e-9)-1), ms(x.ComputeUs), ms(x.ExposedUs), ms(x.BubbleUs),
			ms(x.HostUs), ms(x.BoundUs))
	}
	row("as given", r)
	for i := range w.p.Versus {
		row(w.p.Versus[i].Options, w.p.Versus[i].Report)
	}
	w.raw("</tbody></table></div>\n")
}

func (w *writer) key(more string) {
	w.raw("<p class=\"key\">")
	for _, c := range classes {
		w.raw("<span><i class=\"%s\"></i>%s</span>", c.class, c.name)
	}
	w.raw("%s</p>\n", more)
}

// ranks draws how each rank spends an iteration.
func (w *writer) ranks() {
	r := w.p.Report
	most := 1e-9
	for i := range r.ByRank {
		most = max(most, sum(&r.ByRank[i]))
	}
	w.Section("ranks", "An iteration by rank")
	w.key("")
	w.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Ranks\"><table><thead><tr><th " +
		"class=\"t\">rank</th><th class=\"t\">iteration</th><th>compute " +
		"ms</th><th>exposed</th><th>waiting</th><th>host</th><th>idle</th></tr></thead><tbody>\n")
	for i := range r.ByRank {
		if i == ranksShown {
			w.raw("<tr><td class=\"t\" colspan=\"7\">%d more ranks; --json has them all</td></tr>\n",
				len(r.ByRank)-i)
			break
		}
		x := &r.ByRank[i]
		w.raw("<tr><td class=\"t\">%d</td><td class=\"t wide2\"><div class=\"stack\">", x.Rank)
		for k, v := range parts(x) {
			if share := 100 * v / most; share >= 0.05 {
				w.raw("<i class=\"%s\" style=\"width:%.2f%%\" title=\"%s %s ms\"></i>", classes[k].class,
					share, classes[k].name, ms(v))
			}
		}
		w.raw("</div></td>")
		for _, v := range parts(x) {
			w.raw("<td>%s</td>", ms(v))
		}
		w.raw("</tr>\n")
	}
	w.raw("</tbody></table></div>\n")
}

func parts(x *replay.Rank) [5]float64 {
	return [5]float64{x.ComputeUs, x.MovingUs, x.BubbleUs, x.HostUs, x.IdleUs}
}

func sum(x *replay.Rank) (t float64) {
	for _, v := range parts(x) {
		t += v
	}
	return t
}

func (w *writer) path() {
	r := w.p.Report
	if len(r.Path) == 0 {
		return
	}
	total := 1e-9
	for _, s := range r.Path {
		total += s.Us
	}
	w.Section("path", "What the end waited for")
	w.raw("<p>The critical path: each step began when the one before it was done. A call counts since its " +
		"last member had begun.</p><div class=\"wide\" tabindex=\"0\" role=\"region\" " +
		"aria-label=\"Critical path\"><table><thead><tr><th class=\"t\">on the critical " +
		"path</th><th>ms</th><th>share</th><th class=\"t\">share</th></tr></thead><tbody>\n")
	for i, s := range r.Path {
		if i == jobRowsShown {
			break
		}
		class := map[string]string{"compute": "kgreen", "host": "kolive", "waiting for SMs": "wait"}[s.What]
		class = cmp.Or(class, "kblue")
		w.raw("<tr><td class=\"t\">%s</td><td>%s</td><td>%.1f %%</td><td class=\"t wide2\"><div "+
			"class=\"bar\"><div class=\"%s\" style=\"width:%.1f%%\"></div></div></td></tr>\n",
			jobText(s.What),
			ms(s.Us), 100*s.Us/total, class, 100*s.Us/total)
	}
	w.raw("</tbody></table></div>\n")
}

func (w *writer) groups() {
	r := w.p.Report
	if len(r.Groups) == 0 {
		return
	}
	w.Section("groups", "Groups")
	w.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Groups\"><table><thead><tr><th " +
		"class=\"t\">group</th><th class=\"t\">kind</th><th>ranks</th><th>calls</th><th>MB a " +
		"rank</th><th>busy ms</th><th>exposed ms</th><th class=\"t\">share</th></tr></thead><tbody>\n")
	rows := r.Folded()
	for i, g := range rows {
		if i == jobRowsShown {
			w.raw("<tr><td class=\"t\" colspan=\"8\">%d more groups</td></tr>\n", len(rows)-i)
			break
		}
		w.raw("<tr><td class=\"t\">%s</td><td "+
			"class=\"t\">%s</td><td>%d</td><td>%.4g</td><td>%s</td><td>%s</td><td>%s</td><td "+
			"class=\"t\"><div class=\"bar\"><div class=\"kblue\" "+
			"style=\"width:%.1f%%\"></div></div></td></tr>\n", jobText(g.Name), jobText(g.Kind), g.Ranks,
			g.Calls,
			replay.Megabytes(g.BytesPerRank), ms(g.BusyUs), ms(g.ExposedUs),
			min(100, 100*g.ExposedUs/max(r.IterationUs, 1e-9)))
	}
	w.raw("</tbody></table></div>\n")
}

func (w *writer) calls() {
	r := w.p.Report
	if len(r.Calls) == 0 {
		return
	}
	w.Section("calls", "Calls, by what they take in all")
	w.raw("<p>A call's time is since its last member had begun; alone is without anything beside " +
		"it.</p><div class=\"wide\" tabindex=\"0\" role=\"region\" " +
		"aria-label=\"Calls\"><table><thead><tr><th class=\"t\">group</th><th " +
		"class=\"t\">call</th><th>bytes</th><th>times</th><th>us</th><th>alone</th><th>contended</th><th>" +
		"recorded</th><th>error</th><th class=\"t\">choice</th></tr></thead><tbody>\n")
	for i, c := range r.Calls {
		if i == jobRowsShown {
			w.raw("<tr><td class=\"t\" colspan=\"10\">%d more; --json has them all</td></tr>\n",
				len(r.Calls)-i)
			break
		}
		recorded, off, contended := "–", "–", "–"
		if c.RecordedUs != nil && *c.RecordedUs > 0 {
			recorded, off = fmt.Sprintf("%.1f", *c.RecordedUs),
				fmt.Sprintf("%+.1f %%", 100*(c.Us / *c.RecordedUs - 1))
		}
		if c.AloneUs > 0 {
			contended = fmt.Sprintf("×%.2f", c.Us/c.AloneUs)
		}
		w.raw("<tr><td class=\"t\">%s</td><td "+
			"class=\"t\">%s</td><td>%d</td><td>%d</td><td>%.1f</td><td>%.1f</td><td>%s</td><td>%s</td>"+
			"<td>%s</td><td class=\"t\">%s %s</td></tr>\n",
			jobText(c.Group), jobText(c.Func), c.Bytes, c.Times, c.Us, c.AloneUs, contended, recorded, off,
			jobText(c.Algo), jobText(c.Proto))
	}
	w.raw("</tbody></table></div>\n")
}
