package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// linkUse is a line of the table of links: one link, or several that carried the same.
type linkUse struct {
	Name     string
	Count    int
	Bytes    units.Bytes
	Capacity float64
	Percent  float64 // of the operation's time that the bytes need at least
}

const (
	loadsShown = 60
	loadsOpen  = 8 // of them before the fold
)

// share is the part of the operation's time that a link's bytes need.
func share(l *exec.LinkLoad, elapsed units.Time) float64 {
	if elapsed <= 0 {
		return 0
	}
	return float64(l.Ideal()) / float64(elapsed)
}

// Loads are a host's links by name. Where a run has merged equivalent ranks (folded), a link
// that was not simulated has the load of the fullest of its kind, and merged is true.
func Loads(s *topo.System, host string, links []exec.LinkLoad, folded bool) (by map[string]*exec.LinkLoad,
	merged bool) {
	by = make(map[string]*exec.LinkLoad, len(links))
	for i := range links {
		by[links[i].Name] = &links[i]
	}
	if !folded {
		return by, false
	}
	type kind struct {
		from, to topo.NodeKind
		link     topo.LinkKind
		speed    units.GBps
	}
	kindOf := func(l *topo.Link) kind { return kind{s.Nodes[l.From].Kind, s.Nodes[l.To].Kind, l.Kind, l.BW} }
	name := func(l *topo.Link) string { return host + " " + s.Short(l.From) + "→" + s.Short(l.To) }
	fullest := map[kind]*exec.LinkLoad{}
	for i := range s.Links {
		l := &s.Links[i]
		if x := by[name(l)]; x != nil && (fullest[kindOf(l)] == nil || x.Bytes > fullest[kindOf(l)].Bytes) {
			fullest[kindOf(l)] = x
		}
	}
	for i := range s.Links {
		l := &s.Links[i]
		if x := fullest[kindOf(l)]; x != nil && by[name(l)] == nil {
			by[name(l)], merged = x, true
		}
	}
	return by, merged
}

// Folded reports whether a run has merged equivalent ranks.
func Folded(r *exec.Result) bool {
	return r.Account.Method == exec.Folded || r.Account.Method == exec.Near
}

// loads lists the fullest links, equal ones as one line.
func loads(links []exec.LinkLoad, elapsed units.Time) (out []linkUse, left int) {
	type group struct {
		shape string
		bytes units.Bytes
		bw    float64
	}
	at := map[group]int{}
	var names [][]string
	for i := range links {
		l := &links[i]
		if l.Capacity <= 0 || l.Bytes == 0 {
			continue
		}
		k := group{shape(l.Name), l.Bytes, float64(l.Capacity)}
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k] = n
			out, names = append(out, linkUse{Bytes: l.Bytes, Capacity: k.bw, Percent: 100 * share(l,
				elapsed)}),
				append(names, nil)
		}
		names[n] = append(names[n], l.Name)
	}
	for i := range out {
		out[i].Count, out[i].Name = len(names[i]), together(names[i])
	}
	slices.SortStableFunc(out, func(a, b linkUse) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), strings.Compare(a.Name, b.Name))
	})
	if n := len(out); n > loadsShown {
		return out[:loadsShown], n - loadsShown
	}
	return out, 0
}

// cut splits a name into its texts and the numbers between them.
func cut(name string) (texts []string, numbers []int) {
	from := 0
	for i := 0; i < len(name); {
		end := i
		for end < len(name) && name[end] >= '0' && name[end] <= '9' {
			end++
		}
		if n, err := strconv.Atoi(name[i:end]); end > i && err == nil {
			texts, numbers = append(texts, name[from:i]), append(numbers, n)
			from = end
		}
		i = max(end, i+1)
	}
	return append(texts, name[from:]), numbers
}

// shape is a name without its numbers.
func shape(name string) string {
	texts, _ := cut(name)
	return strings.Join(texts, "\x00")
}

// namesShown are the names of one line where they are no product of ranges.
const namesShown = 3

// together names links of one shape: with the range of each number where they are all
// that the ranges give, but for numbers that rise together; else the first of them.
func together(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	texts, first := cut(names[0])
	values := make([][]int, len(first))
	for _, name := range names {
		_, numbers := cut(name)
		for i, n := range numbers {
			if !slices.Contains(values[i], n) {
				values[i] = append(values[i], n)
			}
		}
	}
	var b strings.Builder
	product := 1
	for i, v := range values {
		slices.Sort(v)
		if !follows(names, i) {
			product *= len(v)
		}
		b.WriteString(texts[i])
		b.WriteString(ranges(v))
	}
	b.WriteString(texts[len(values)])
	if product == len(names) {
		return b.String()
	}
	list := strings.Join(names[:min(namesShown, len(names))], ", ")
	if more := len(names) - namesShown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// follows reports whether the i-th number of the names rises with one before it, as in
// GPU0→PCI0, GPU1→PCI1: its range multiplies nothing.
func follows(names []string, i int) bool {
	for k := range i {
		of, rises := map[int]int{}, true
		var pairs [][2]int
		for _, name := range names {
			_, n := cut(name)
			if v, ok := of[n[k]]; ok && v != n[i] {
				rises = false
				break
			} else if !ok {
				of[n[k]] = n[i]
				pairs = append(pairs, [2]int{n[k], n[i]})
			}
		}
		slices.SortFunc(pairs, func(a, b [2]int) int { return a[0] - b[0] })
		rises = rises && len(pairs) > 1 && slices.IsSortedFunc(pairs, func(a, b [2]int) int {
			return a[1] - b[1]
		})
		for p := 1; rises && p < len(pairs); p++ {
			rises = pairs[p][1] > pairs[p-1][1]
		}
		if rises {
			return true
		}
	}
	return false
}

// ranges prints sorted numbers: "0–7", "0,2,5".
func ranges(v []int) string {
	var parts []string
	for i := 0; i < len(v); {
		end := i
		for end+1 < len(v) && v[end+1] == v[end]+1 {
			end++
		}
		switch {
		case end == i:
			parts = append(parts, strconv.Itoa(v[i]))
		case end == i+1:
			parts = append(parts, strconv.Itoa(v[i]), strconv.Itoa(v[end]))
		default:
			parts = append(parts, fmt.Sprintf("%d–%d", v[i], v[end]))
		}
		i = end + 1
	}
	return strings.Join(parts, ",")
}

// grouped writes a number with separators.
func grouped(b units.Bytes) string {
	s := strconv.FormatInt(int64(b), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
