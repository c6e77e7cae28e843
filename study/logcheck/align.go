package logcheck

import (
	"strings"

	"github.com/simccl/simccl/study/ncclog"
)

// match is a line of the log and simccl's line of the same key; one of them is -1
// where the other has none.
type match struct{ theirs, ours int }

// Costs of an alignment: two different lines with one key cost less than two unmatched lines, and a line that
// is missing in the log costs least.
const (
	costDiffers = 4
	costExtra   = 6
	costAbsent  = 1
)

// maxAlign bounds the table of costs; longer lists are matched by key alone.
const maxAlign = 1 << 22

// align matches lines in their order: equal ones, else ones of the same key, so that
// few are left over. Lines that are left over and equal are matched in any order.
func align(logged []ncclog.Text, ours []string) []match {
	a, b := 0, 0
	for a < len(logged) && a < len(ours) && logged[a].Text == ours[a] {
		a++
	}
	for b < len(logged)-a && b < len(ours)-a && logged[len(logged)-1-b].Text == ours[len(ours)-1-b] {
		b++
	}
	out := make([]match, 0, max(len(logged), len(ours)))
	for i := range a {
		out = append(out, match{i, i})
	}
	mid, our := logged[a:len(logged)-b], ours[a:len(ours)-b]
	inner := func(mid []ncclog.Text, our []string) []match { return byCost(mid, our, keyOf) }
	if len(mid)*len(our) > maxAlign {
		inner = byKey
	}
	for _, m := range reorder(inner(mid, our), mid, our) {
		if m.theirs >= 0 {
			m.theirs += a
		}
		if m.ours >= 0 {
			m.ours += a
		}
		out = append(out, m)
	}
	for i := b; i > 0; i-- {
		out = append(out, match{len(logged) - i, len(ours) - i})
	}
	return out
}

// byCost returns the alignment of least cost (Needleman and Wunsch 1970), of lines of one
// key with each other.
func byCost(logged []ncclog.Text, ours []string, key func(string) string) []match {
	n, m := len(logged), len(ours)
	theirKeys, ourKeys := make([]string, n), make([]string, m)
	for i := range logged {
		theirKeys[i] = key(logged[i].Text)
	}
	for j := range ours {
		ourKeys[j] = key(ours[j])
	}
	width := m + 1
	cost := make([]int32, (n+1)*width) // of aligning the lines from i and j
	pair := func(i, j int) int32 {
		switch {
		case logged[i].Text == ours[j]:
			return 0
		case theirKeys[i] == ourKeys[j]:
			return costDiffers
		}
		return costExtra + costAbsent + 1
	}
	for i := n; i >= 0; i-- {
		for j := m; j >= 0; j-- {
			switch {
			case i == n:
				cost[i*width+j] = int32(m-j) * costAbsent
			case j == m:
				cost[i*width+j] = int32(n-i) * costExtra
			default:
				cost[i*width+j] = min(pair(i, j)+cost[(i+1)*width+j+1], costExtra+cost[(i+1)*width+j],
					costAbsent+cost[i*width+j+1])
			}
		}
	}
	var out []match
	for i, j := 0, 0; i < n || j < m; {
		c := cost[i*width+j]
		switch {
		case i < n && j < m && c == pair(i, j)+cost[(i+1)*width+j+1]:
			out = append(out, match{i, j})
			i, j = i+1, j+1
		case i < n && (j == m || c == costExtra+cost[(i+1)*width+j]):
			out = append(out, match{i, -1})
			i++
		default:
			out = append(out, match{-1, j})
			j++
		}
	}
	return out
}

// byKey matches each line with the first of its text or key that is left.
func byKey(logged []ncclog.Text, ours []string) []match {
	left := map[string][]int{}
	for j, o := range ours {
		left[o] = append(left[o], j)
		left["key "+keyOf(o)] = append(left["key "+keyOf(o)], j)
	}
	taken := make([]bool, len(ours))
	take := func(key string) int {
		for len(left[key]) > 0 {
			j := left[key][0]
			left[key] = left[key][1:]
			if !taken[j] {
				taken[j] = true
				return j
			}
		}
		return -1
	}
	out := make([]match, len(logged))
	for i := range logged {
		out[i] = match{i, take(logged[i].Text)}
	}
	for i := range out {
		if out[i].ours < 0 {
			out[i].ours = take("key " + keyOf(logged[i].Text))
		}
	}
	for j := range ours {
		if !taken[j] {
			out = append(out, match{-1, j})
		}
	}
	return out
}

// reorder matches lines that are left over on both sides and equal, or of one key: a
// collector of logs may have sorted them.
func reorder(ms []match, logged []ncclog.Text, ours []string) []match {
	for _, key := range []func(string) string{func(s string) string { return s }, keyOf} {
		left := map[string][]int{} // of simccl's lines
		for k, m := range ms {
			if m.theirs < 0 && m.ours >= 0 {
				left[key(ours[m.ours])] = append(left[key(ours[m.ours])], k)
			}
		}
		for k := range ms {
			if ms[k].ours >= 0 || ms[k].theirs < 0 {
				continue
			}
			if at := left[key(logged[ms[k].theirs].Text)]; len(at) > 0 {
				left[key(logged[ms[k].theirs].Text)] = at[1:]
				ms[k].ours, ms[at[0]].ours = ms[at[0]].ours, -1
			}
		}
	}
	out := ms[:0]
	for _, m := range ms {
		if m.theirs >= 0 || m.ours >= 0 {
			out = append(out, m)
		}
	}
	return out
}

// keyOf returns the subject of a line, by which lines are matched: "Ring 04", "Channel 04", "Pattern 4",
// "GPU/0-3000 :".
func keyOf(line string) string {
	if m := linkText().FindStringSubmatch(line); m != nil {
		name, _, _ := strings.Cut(m[4], " ")
		return m[2] + " " + name
	}
	trimmed := strings.TrimLeft(line, " ")
	switch w := strings.Fields(trimmed); {
	case len(w) == 0:
		return ""
	case strings.HasPrefix(trimmed, "P2P Chunksize"), strings.HasPrefix(trimmed, "ncclP2pSchedule"),
		strings.HasPrefix(trimmed, "threadThresholds"),
		strings.HasPrefix(trimmed, "NVLS Trees"), strings.HasPrefix(trimmed, "NVLS tuning"),
		strings.HasPrefix(trimmed, "=== System"):
		return w[0] + w[1]
	case strings.HasSuffix(line, "per peer"):
		return "channels"
	case w[0] == "Pattern" && len(w) > 1, w[0] == "Tree" && len(w) > 1, w[0] == "Ring" && len(w) > 1:
		return w[0] + strings.TrimRight(w[1], ",")
	case w[0] == "NVLS" && len(w) > 2:
		return strings.Join(w[:3], " ")
	case w[0] == "Channel" && len(w) > 1:
		number, _, _ := strings.Cut(w[1], "/")
		return w[0] + number
	case tableRow(line), strings.Contains(line, " |"):
		return w[0]
	}
	head, _, _ := strings.Cut(trimmed, " ")
	if strings.Contains(line, " :") {
		head += " :"
	}
	return head
}
