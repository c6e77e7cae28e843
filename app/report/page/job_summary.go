package page

import (
	"fmt"
)

// summary is the top of the page: the answer, and a figure for each question.
func (p *JobPage) summary() (answer string, tiles []tile) {
	r := p.Report
	answer = ms(r.IterationUs) + " ms an iteration"
	switch {
	case r.RecordedUs == nil || *r.RecordedUs <= 0:
		answer += "; at least " + ms(r.BoundUs)
	case r.RecordedAs != "":
		answer += fmt.Sprintf("; at least %s. The recording took %s", ms(r.BoundUs), r.Recorded())
	default:
		answer += fmt.Sprintf(", recorded %s; at least %s", r.Recorded(), ms(r.BoundUs))
	}
	all := max(r.IterationUs, 1e-9)
	part := func(name string, us float64, note string) {
		tiles = append(tiles, tile{Name: name, Value: fmt.Sprintf("%.1f %%", 100*us/all),
			Note: fmt.Sprintf("%s ms a rank, %s", ms(us), note)})
	}
	part("Compute", r.ComputeUs, "the mean of the ranks")
	part("Exposed communication", r.ExposedUs, "no kernel hides it; with the waiting")
	part("Waiting for other ranks", r.BubbleUs, "calls before their last member")
	if r.Bounds.Link != "" {
		tiles = append(tiles, tile{Name: "Busiest link", Value: r.Bounds.Link,
			Note: fmt.Sprintf("its bytes need %s ms", ms(r.Bounds.LinkUs))})
	}
	most := -1
	for i := range r.Ideal {
		if most < 0 || r.Ideal[i].WonUs > r.Ideal[most].WonUs {
			most = i
		}
	}
	if most >= 0 && r.Ideal[most].WonUs > 0 {
		x := &r.Ideal[most]
		tiles = append(tiles, tile{Name: "Most to win", Value: fmt.Sprintf("%.1f %%", 100*x.WonUs/all),
			Note: "if calls of " + x.Group + " took no time", Alt: true})
	}
	return answer, tiles
}
