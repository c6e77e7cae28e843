package accuracy

import (
	_ "embed"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"

	"github.com/simccl/simccl/dev/golden"
)

// networkMark begins the part of docs/results/ACCURACY.md that is about clusters.
const networkMark = "# Between nodes: published tables against simulated ones\n"

// off sums up how far simulated sizes are from published ones.
type off struct {
	mean, low, high float64
	inside          int
}

func offOf(cs []Compared) off {
	o := off{low: math.Inf(1), high: math.Inf(-1)}
	for _, c := range cs {
		e := c.Off()
		o.mean += math.Abs(e) / float64(len(cs))
		o.low, o.high = min(o.low, e), max(o.high, e)
		if math.Abs(e) <= 0.10 {
			o.inside++
		}
	}
	return o
}

func (o off) String() string {
	return fmt.Sprintf("%.1f | %+.1f to %+.1f", 100*o.mean, 100*o.low, 100*o.high)
}

// span prints sizes and bandwidths of a table.
func span(cs []Compared) string {
	first, last := cs[0], cs[len(cs)-1]
	return fmt.Sprintf("%d–%d MiB | %.1f–%.1f | %.1f–%.1f", first.Bytes>>20, last.Bytes>>20, first.Real,
		last.Real, first.Sim, last.Sim)
}

// machineOf names the machine that represents a table's.
func (p *Published) machineOf() string {
	if p.named != "" {
		return fmt.Sprintf("%s | %d x %d", p.named, p.nodes, p.gpus)
	}
	if p.domain > 0 {
		return fmt.Sprintf("%s, %d to a domain | %d x %d", p.topo, p.domain, p.nodes, p.gpus)
	}
	return fmt.Sprintf("%s | %d x %d", p.topo, p.nodes, p.gpus)
}

// row sums up a table.
func (p *Published) row(b *strings.Builder, cs []Compared) (inside int) {
	settings := strings.ReplaceAll(strings.Join(p.env, ", "), "NCCL_", "")
	if settings == "" {
		settings = "–"
	}
	used := "tests"
	if p.fixes {
		used = "fixes"
	}
	o := offOf(cs)
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %v | %d of %d |\n", p.file, used, p.machineOf(), settings,
		span(cs), o, o.inside, len(cs))
	return o.inside
}

// leftOut lists the tables that are not compared, by the reason.
func leftOut(t *testing.T) string {
	d := data(t)
	files, err := fs.Glob(d.Tables, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	why := map[string][]string{}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".json")
		if slices.ContainsFunc(Tables(), func(p Published) bool { return p.file == name }) {
			continue
		}
		tab, err := d.table(name)
		if err != nil {
			t.Fatal(err)
		}
		r := tab.reason()
		if r == "" {
			t.Errorf("%s is clean, and no machine represents it", name)
		}
		why[r] = append(why[r], name)
	}
	var b strings.Builder
	for _, r := range reasons {
		if len(why[r]) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", r, strings.Join(why[r], ", "))
		}
	}
	return b.String()
}

// reasons why tables are not compared, in the order of the page.
var reasons = []string{
	"not NVIDIA", "one node, or one NVLink domain: no network", "neither InfiniBand nor RoCE",
	"nothing from 64 MiB on",
	"not clean, by their own notes",
}

// reason reports why a table is not compared, and "" where it should be.
func (tab *table) reason() string {
	has := func(s string, words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
	}
	switch {
	case has(tab.System.GPU, "MI3"):
		return reasons[0]
	case tab.System.Nodes == 1, has(tab.System.GPU, "NVL72") && tab.System.Nodes <= 18:
		return reasons[1]
	case has(tab.System.NIC, "EFA", "TCPX", "Slingshot", "gVNIC"):
		return reasons[2]
	case len(tab.Rows) == 0 || tab.Rows[len(tab.Rows)-1].Bytes < large:
		return reasons[3]
	case !strings.HasPrefix(tab.Quality, "clean"):
		return reasons[4]
	}
	return ""
}

// least is how many points of the rule's tables are within 10 %, of points. It
// is raised with the page, and never lowered without a reason in the commit.
const least, points = 93, 101

var pageCount = regexp.MustCompile(`(?m)^(\d+) of (\d+) points are within 10 %`)

// TestPublishedTables simulates every published table of the rule and counts the
// sizes within 10 %: no fewer than ever before, and as many as the page says.
func TestPublishedTables(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: simulates 101 points of up to 1,440 ranks, minutes of a processor")
	}
	inside, all := 0, 0
	for name, cs := range compareAll(t, publics) {
		o := offOf(cs)
		inside, all = inside+o.inside, all+len(cs)
		for _, c := range cs {
			if math.Abs(c.Off()) > 0.10 {
				t.Logf("%s, %d bytes by %s: %.1f GB/s, published %.1f: %+.1f %%", name, c.Bytes, c.Choice,
					c.Sim, c.Real, 100*c.Off())
			}
		}
	}
	if all != points || inside < least {
		t.Errorf("%d of %d points are within 10 %%, want at least %d of %d", inside, all, least, points)
	}
	_, page := splitPage(t)
	if m := pageCount.FindStringSubmatch(page); m == nil || m[1] != strconv.Itoa(inside) ||
		m[2] != strconv.Itoa(all) {
		t.Errorf("%d of %d points are within 10 %%, results/ACCURACY.md says %q; make accuracy writes it",
			inside, all, m)
	}
}

// data is the published tables beside the checkout.
func data(t testing.TB) *Data {
	t.Helper()
	return &Data{Tables: os.DirFS(golden.Shared(t, "measured", "public")),
		Topos: os.DirFS(golden.Root(t, "testdata", "topos"))}
}

// compareAll compares tables, each in a subtest of its own, some at a time. It
// notes the settings of each run in the list.
func compareAll(t *testing.T, list []Published) map[string][]Compared {
	t.Helper()
	d := data(t)
	var mu sync.Mutex
	out := map[string][]Compared{}
	t.Run("tables", func(t *testing.T) {
		for i := range list {
			p := &list[i]
			t.Run(p.file, func(t *testing.T) {
				t.Parallel()
				cs, env, err := p.Compare(t.Context(), d)
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				out[p.file], p.env = cs, env
			})
		}
	})
	return out
}

// TestPublishedTablesStayClose holds a table of each kind of GPU and choice, of
// those that take seconds, to the 10 % that the page gives: what -short has of
// TestPublishedTables. None of them fixes a parameter.
func TestPublishedTablesStayClose(t *testing.T) {
	kept := []string{"oci_h100_2n_all_reduce", "oci_a100_2n_all_reduce",
		"sophia_dgxa100_2n_all_reduce_env6_2816", "gke_a3ultra_h200_2n_all_gather",
		"h100_10n2g_alltoall", "h100_10n4g_reduce_scatter", "polaris_a100_8n_all_gather_nccl218"}
	list := slices.DeleteFunc(Tables(), func(p Published) bool { return !slices.Contains(kept, p.file) })
	for i := range list {
		if list[i].fixes {
			t.Errorf("%s fixes a parameter, it is no test", list[i].file)
		}
	}
	if len(list) != len(kept) {
		t.Errorf("%d of %d tables are listed", len(list), len(kept))
	}
	for name, cs := range compareAll(t, list) {
		for _, c := range cs {
			if math.Abs(c.Off()) > 0.10 {
				t.Errorf("%s, %d bytes by %s: %.1f GB/s, published %.1f: %+.1f %%", name, c.Bytes, c.Choice,
					c.Sim, c.Real, 100*c.Off())
			}
		}
	}
}

//go:embed between.md.tmpl
var betweenText string

// between is what the template of the page's second half is filled with.
type between struct {
	Tables, Hard, Clouds, Aside, Small, LeftOut string

	Mean                                                         string // of tables but those apart
	Apart                                                        strings.Builder
	Inside, Points, TestInside, TestPoints, FixInside, FixPoints int
}

// TestPageHasTheTemplatesProse: an edit of one must be made in both. It holds
// without a simulation, and where the published tables are absent.
func TestPageHasTheTemplatesProse(t *testing.T) {
	field := regexp.MustCompile(`\\{\\{\\.\w+\\}\\}`) // as QuoteMeta has it
	pattern := field.ReplaceAllString(regexp.QuoteMeta(betweenText), `(?s:.*?)`)
	_, page := splitPage(t)
	if page = strings.TrimLeft(page, "\n"); !regexp.MustCompile(`^` + pattern + `$`).MatchString(page) {
		for line := range strings.Lines(betweenText) {
			if !strings.Contains(line, "{{") && !strings.Contains(page, line) {
				t.Errorf("docs/results/ACCURACY.md has no line\n%s", line)
			}
		}
		t.Error("docs/results/ACCURACY.md is not what between.md.tmpl makes; make accuracy writes it")
	}
}

// TestAccuracyBetweenNodes keeps the part of docs/results/ACCURACY.md about clusters.
func TestAccuracyBetweenNodes(t *testing.T) {
	if testing.Short() || !golden.Updating() {
		t.Skip("writes the page, for make accuracy; TestPublishedTables holds its count")
	}
	page := between{LeftOut: leftOut(t), Aside: asideRows(t), Small: smallRows(t)}
	rows := func(list []Published, count func(p *Published, inside, points int)) string {
		var b strings.Builder
		all := compareAll(t, list)
		var mean sum
		for i := range list {
			cs := all[list[i].file]
			if off := offOf(cs).mean; list[i].why == "" {
				mean.add(off)
			} else {
				fmt.Fprintf(&page.Apart, "Left out of it, %s (%.1f %%): %s.\n", list[i].file, 100*off,
					list[i].why)
			}
			page.Mean = fmt.Sprintf("%.1f", 100*mean.mean())
			count(&list[i], list[i].row(&b, cs), len(cs))
		}
		return b.String()
	}
	page.Tables = rows(publics, func(p *Published, inside, points int) {
		page.Inside, page.Points = page.Inside+inside, page.Points+points
		if p.fixes {
			page.FixInside, page.FixPoints = page.FixInside+inside, page.FixPoints+points
		} else {
			page.TestInside, page.TestPoints = page.TestInside+inside, page.TestPoints+points
		}
	})
	mean := page.Mean
	page.Hard = rows(hards, func(*Published, int, int) {})
	page.Mean = mean
	page.Clouds = cloudRows(t)
	var b strings.Builder
	if err := template.Must(template.New("between").Parse(betweenText)).Execute(&b, &page); err != nil {
		t.Fatal(err)
	}
	node, _ := splitPage(t)
	golden.Text(t, accuracyPage(t), node+b.String())
}

func asideRows(t *testing.T) string {
	var b strings.Builder
	all := compareAll(t, asides)
	for i := range asides {
		p := &asides[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %v | %s |\n", p.file, p.machineOf(), span(all[p.file]),
			offOf(all[p.file]), p.why)
	}
	return b.String()
}

func smallRows(t *testing.T) string {
	var b strings.Builder
	d := data(t)
	for i := range publics {
		p := &publics[i]
		tab, err := d.table(p.file)
		if err != nil {
			t.Fatal(err)
		}
		tab.between(1<<20-1<<17, large-large/8)
		if len(tab.Rows) == 0 || tab.Rows[0].Bytes >= large-large/8 {
			continue // it begins above
		}
		cs, _, err := p.compareTo(t.Context(), d, tab)
		if err != nil {
			t.Fatal(err)
		}
		o := offOf(cs)
		fmt.Fprintf(&b, "| %s | %s | %v | %d of %d |\n", p.file, span(cs), o, o.inside, len(cs))
	}
	return b.String()
}

// accuracyPage is the page of two halves: what was measured on one node, and
// clusters.
func accuracyPage(t *testing.T) string { return golden.Root(t, "docs", "results", "ACCURACY.md") }

// splitPage returns the halves of docs/results/ACCURACY.md as they are.
func splitPage(t *testing.T) (node, cluster string) {
	data, err := os.ReadFile(accuracyPage(t))
	if err != nil {
		t.Fatal(err)
	}
	node, cluster, found := strings.Cut(string(data), networkMark)
	if found {
		cluster = networkMark + cluster
	}
	return node, cluster
}
