package accuracy

import (
	"fmt"
	"strings"
	"testing"
)

const cloudHead = "| table | used | represented by | nodes x GPUs | settings | sizes | published | " +
	"simulated | mean off | range | within 10 % |\n|---|---|---|---|---|---|---|---|---|---|---|\n"

// cloudRow is a table's row, without what is the same in all.
func cloudRow(p *Published, cs []Compared) string {
	var b strings.Builder
	p.row(&b, cs)
	return b.String()
}

// cloudRows tables the clouds, one after the other, with the mean of each.
func cloudRows(t *testing.T) string {
	var b strings.Builder
	for i := range clouds {
		c := &clouds[i]
		all := compareAll(t, c.tables)
		fmt.Fprintf(&b, "### %s\n\n%s", c.Name, cloudHead)
		sum, counted := 0.0, 0
		var left strings.Builder
		for k := range c.tables {
			p := &c.tables[k]
			b.WriteString(cloudRow(p, all[p.file]))
			if p.why != "" {
				fmt.Fprintf(&left, "Left out of it, %s: %s.\n", p.file, p.why)
				continue
			}
			sum += offOf(all[p.file]).mean
			counted++
		}
		fmt.Fprintf(&b, "\nMean over tables: %.1f %%", 100*sum/float64(counted))
		if c.Aim > 0 {
			fmt.Fprintf(&b, ", to be at most %.0f %%", 100*c.Aim)
		}
		fmt.Fprintf(&b, ".\n%s\n", &left)
	}
	return b.String()
}

// TestCloudsStayClose: tables of a few nodes are as far off as docs/results/ACCURACY.md says,
// and the page has the mean of each cloud.
func TestCloudsStayClose(t *testing.T) {
	_, page := splitPage(t)
	for i := range clouds {
		c := clouds[i]
		if !strings.Contains(page, "### "+c.Name+"\n") {
			t.Errorf("docs/results/ACCURACY.md has no %s; make accuracy writes it", c.Name)
		}
		var few []Published
		for _, p := range c.tables {
			if p.nodes <= 4 {
				few = append(few, p)
			}
		}
		all := compareAll(t, few)
		for k := range few {
			p := &few[k]
			cs := all[p.file]
			if row := cloudRow(p, cs); !strings.Contains(page, row) {
				t.Errorf("docs/results/ACCURACY.md has no row\n%smake accuracy writes it", row)
			}
			if o := offOf(cs); c.Aim > 0 && o.mean > c.Aim {
				t.Errorf("%s is %.1f %% off, more than %.0f", p.file, 100*o.mean, 100*c.Aim)
			}
		}
	}
}
