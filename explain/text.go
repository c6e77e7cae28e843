package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Text is the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	red := ""
	if r.RedOp != "" {
		red = " " + r.RedOp
	}
	fmt.Fprintf(&b, "%s of %s B (%s%s, count %d), %s on %s, rules of %s\n\n",
		r.Op, group(r.Size), r.Type, red, r.Count, plural(r.Ranks, "rank"), plural(r.Nodes, "node"),
		r.library()+" "+strings.TrimPrefix(r.NCCL, "rccl-"))
	if c := r.Choice; c != nil {
		who, whose := r.library()+" takes", "its"
		if r.Steered {
			who, whose = "The tuner plugin takes", r.library()+"'s"
		}
		fmt.Fprintf(&b, "%s %s with %s: %.2f us, algbw %.2f GB/s, busbw %.2f GB/s by %s cost model\n", who,
			c.Algo, c.Proto, c.TimeUs, c.AlgBW, c.BusBW, whose)
		fmt.Fprintf(&b, "  %.2f us of it are latency, %.2f us are bytes at %.4g GB/s\n", c.LatencyUs,
			max(0, c.TimeUs-c.LatencyUs), c.BandwidthGBps)
	}
	for _, o := range r.Overruled {
		fmt.Fprintf(&b, "  not by the least time: %s\n", cited(o.String(), o.Source))
	}
	for _, o := range r.Instead {
		fmt.Fprintf(&b, "In place of that %s\n", cited(o.String(), o.Source))
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "%s\n", r.Note)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", w)
	}
	r.presetText(&b)
	r.launchText(&b)
	r.rivalText(&b)
	r.crossoverText(&b)
	r.boundText(&b)
	r.memoryText(&b)
	r.refusedText(&b)
	return b.String()
}

func (r *Report) launchText(b *strings.Builder) {
	l := r.Launch
	if l == nil {
		return
	}
	if l.Channels == 0 {
		fmt.Fprintf(b, "\nLaunch: at most %s, %d threads each, buffers of %s B\n",
			plural(l.MaxChannels, "channel"),
			l.Threads, group(l.Buffer))
		return
	}
	fmt.Fprintf(b, "\nLaunch: %d of at most %s, %d threads each, buffers of %s B\n", l.Channels,
		plural(l.MaxChannels, "channel"), l.Threads, group(l.Buffer))
	if len(l.Parts) == 0 {
		return
	}
	rows := [][]string{{"channels", "bytes", "chunk", "slice", "steps"}}
	for _, p := range l.Parts {
		name := strconv.Itoa(p.First)
		if p.Last > p.First {
			name += ".." + strconv.Itoa(p.Last)
		}
		if l.Striped {
			name += " in turn"
		}
		rows = append(rows, []string{name, group(p.Bytes), group(p.Chunk), group(p.Slice),
			strconv.Itoa(p.Steps)})
	}
	table(b, rows, "lrrrr")
}

func (r *Report) rivalText(b *strings.Builder) {
	if len(r.Rivals) == 0 {
		return
	}
	b.WriteString("\nRivals:\n")
	rows := [][]string{{"algorithm", "protocol", "time us", "x", "latency us", "GB/s", "why not"}}
	for i := 0; i < len(r.Rivals); i++ {
		c := r.Rivals[i]
		if c.Available {
			rows = append(rows, []string{c.Algo, c.Proto, fmt.Sprintf("%.2f", c.TimeUs), slower(c.Slower),
				fmt.Sprintf("%.2f", c.LatencyUs),
				fmt.Sprintf("%.4g", c.BandwidthGBps), r.lost(c.Slower)})
			continue
		}
		for i+1 < len(r.Rivals) && r.Rivals[i+1].Algo == c.Algo && slices.Equal(r.Rivals[i+1].Off, c.Off) {
			i++
			c.Proto += " " + r.Rivals[i].Proto
			c.BandwidthGBps = 0
		}
		row := []string{c.Algo, c.Proto, "off", "", "", "", ""}
		if c.BandwidthGBps > 0 {
			row[4], row[5] = fmt.Sprintf("%.2f", c.LatencyUs), fmt.Sprintf("%.4g", c.BandwidthGBps)
		}
		for j, o := range c.Off {
			if j > 0 {
				rows, row = append(rows, row), []string{"", "", "", "", "", "", "and "}
			}
			row[6] += cited(o.String(), o.Source)
		}
		rows = append(rows, row)
	}
	table(b, rows, "llrrrrl")
}

// library is whose rules they are.
func (r *Report) library() string {
	if strings.HasPrefix(r.NCCL, "rccl-") {
		return rules.RCCL.String()
	}
	return rules.NCCL.String()
}

// cited writes a rule with where NCCL has it, where the release has a line for it.
func cited(rule, source string) string {
	if source == "" {
		return rule
	}
	return rule + " (" + source + ")"
}

func slower(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x)
}

func (r *Report) lost(x float64) string {
	switch {
	case x == 0:
		return ""
	case x <= 1 && len(r.Overruled) > 0:
		return "of less time; overruled"
	case x < 1:
		return "faster by the model; the tuner plugin chose"
	case x == 1:
		return "equal, and later in " + r.library() + "'s order"
	}
	return "slower"
}

func (r *Report) crossoverText(b *strings.Builder) {
	if len(r.Crossovers) == 0 {
		return
	}
	b.WriteString("\nChoice by size, in bytes:\n")
	rows := [][]string{{"from", "to", "algorithm", "protocol", ""}}
	for i := 0; i < len(r.Crossovers); i++ {
		c, mark := r.Crossovers[i], ""
		if n, names := flips(r.Crossovers[i:]); n > 0 {
			rows = append(rows, []string{group(c.From), group(r.Crossovers[i+n-1].To), names, "",
				"flips between them"})
			i += n - 1
			continue
		}
		if c.Here {
			mark = "<- this size"
		}
		if c.Direct != "" {
			mark = strings.TrimSpace(mark + " (in its place " + c.Direct + ")")
		}
		if c.Mixed {
			mark = strings.TrimSpace(mark + " (alternates with an equal one)")
		}
		rows = append(rows, []string{group(c.From), group(c.To), c.Algo, c.Proto, mark})
	}
	table(b, rows, "rrlll")
}

// narrow is the share of its size below which a range is rounding of float32.
const narrow = 1000

// flips counts the ranges at the start that are narrower than 0.1 % and of two choices,
// and names those; 0 for fewer than two ranges. The one that is asked about stays alone.
func flips(list []Range) (n int, names string) {
	var of []string
	for n < len(list) {
		c := &list[n]
		name := c.Algo + " " + c.Proto
		if c.Here || (c.To-c.From)*narrow >= c.From || len(of) == 2 && !slices.Contains(of, name) {
			break
		}
		if n++; !slices.Contains(of, name) {
			of = append(of, name)
		}
	}
	if n < 2 {
		return 0, ""
	}
	return n, strings.Join(of, ", ")
}

func (r *Report) boundText(b *strings.Builder) {
	if len(r.Derivation) > 0 {
		b.WriteString("\nBandwidth:\n")
		rows := [][]string{}
		for _, s := range r.Derivation {
			rows = append(rows, []string{fmt.Sprintf("%.4g GB/s", s.GBps), s.What})
		}
		table(b, rows, "rl")
	}
	g := r.Graph
	if g == nil || len(g.Links) == 0 {
		return
	}
	fmt.Fprintf(b, "\nBottleneck of the %s graph: %s\n", g.Name, g.Links[0].text())
	rows := [][]string{}
	for _, l := range g.Links[1:] {
		rows = append(rows, []string{"then", fmt.Sprintf("%s (%d)", l.Name, l.Equal), l.Kind,
			fmt.Sprintf("%.4g of %.4g GB/s", l.LoadGBps, l.CapacityGBps)})
	}
	table(b, rows, "llll")
	if g.Faster != "" {
		fmt.Fprintf(b, "  %s\n", g.Faster)
	}
	if g.Rails != "" {
		fmt.Fprintf(b, "  %s\n", g.Rails)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// shownPairs bounds the pairs of a refusal in the text; JSON has them all.
const shownPairs = 4

func (r *Report) refusedText(b *strings.Builder) {
	if len(r.Refused) == 0 {
		return
	}
	b.WriteString("\nRefused paths:\n")
	rows := [][]string{{"what", "who", "rule", "setting"}}
	for _, f := range r.Refused {
		set := cmp.Or(f.Setting, "none changes it")
		rows = append(rows, []string{f.What, someOf(f.Pairs), cited(f.Rule, f.Source), set})
	}
	table(b, rows, "llll")
}

// table writes rows in aligned columns, 'l' or 'r' each, indented by two.
func table(b *strings.Builder, rows [][]string, align string) {
	width := make([]int, len(align))
	for _, r := range rows {
		for i, s := range r {
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
	}
	for _, r := range rows {
		line := " "
		for i, s := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(s))
			if align[i] == 'r' {
				line += " " + pad + s + " "
			} else {
				line += " " + s + pad + " "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// group writes a number with separators: 1,048,576.
func group(n units.Bytes) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
