package flight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/internal/torch"
)

// Program converts the dumps of ranks 0, 1, … to a program: the calls in order, one stream per group, without
// computations. The recorders' ring buffers begin at different calls, so calls that some members lack are
// dropped; notes names them.
func Program(dumps []*Dump) (p *workload.Program, notes []string, err error) {
	if len(dumps) == 0 {
		return nil, nil, fmt.Errorf("there are no dumps")
	}
	b := &builder{Builder: torch.NewBuilder(len(dumps)), times: map[int32][]float64{}}
	b.first(dumps)
	b.received(dumps)
	for r, d := range dumps {
		if err := b.rank(r, d); err != nil {
			return nil, nil, err
		}
		b.P.Of[r] = int32(r)
	}
	for call, v := range b.times { //lint:sorted each entry is computed by itself
		slices.Sort(v)
		b.P.Calls[call].Recorded = units.Time(v[len(v)/2] * 1e9)
	}
	notes = append(notes, "a dump of the Flight Recorder has no computations: calls follow each other")
	notes = append(notes, behind(dumps, b.to)...)
	if b.dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d calls that not all members of their group have recorded were "+
			"left out: the buffer of the recorder begins later, or a member did not come so far", b.dropped))
	}
	if b.unknown > 0 {
		notes = append(notes, fmt.Sprintf("%d calls have names or types that are not known and were left out",
			b.unknown))
	}
	if b.guessed > 0 {
		notes = append(notes, fmt.Sprintf("%d calls of alltoall have unequal parts, of which the recorder "+
			"keeps sums only: each sends by what the others receive", b.guessed))
	}
	return b.P, notes, nil
}

type builder struct {
	*torch.Builder
	times            map[int32][]float64 // by call, milliseconds
	from             map[string]int64    // by group: the first sequence number that all members have
	to               map[string]int64    // and the last
	outs             map[callID][]int64  // elements that each rank of the job receives in an alltoall
	dropped, unknown int
	guessed          int // splits
}

// callID identifies a collective of a group by its sequence number.
type callID struct {
	group string
	seq   int64
}

// first finds from which call on all members of each group have recorded.
func (b *builder) first(dumps []*Dump) {
	b.from, b.to = map[string]int64{}, map[string]int64{}
	for _, d := range dumps {
		low, high := map[string]int64{}, map[string]int64{}
		for i := range d.Entries {
			e := &d.Entries[i]
			if e.P2P || e.Name == "coalesced" {
				continue
			}
			if _, known := low[e.Group]; !known {
				low[e.Group] = e.Seq
			}
			high[e.Group] = max(high[e.Group], e.Seq)
		}
		for g, n := range low { //lint:sorted a maximum
			b.from[g] = max(b.from[g], n)
		}
		for g, n := range high { //lint:sorted a minimum
			if old, known := b.to[g]; !known || n < old {
				b.to[g] = n
			}
		}
	}
}

// maxBehind bounds the notes on members that did not come so far.
const maxBehind = 8

// behind names, of each group, the members whose last call others have passed: a job
// that hangs waits for these. to is the last call that all members have, by group.
func behind(dumps []*Dump, to map[string]int64) (notes []string) {
	last := map[string][]int64{} // by group, rank: the last call; -1 none
	next := map[string]*Entry{}  // by group: the first call that some do not have
	for r, d := range dumps {
		for i := range d.Entries {
			e := &d.Entries[i]
			if e.P2P || e.Name == "coalesced" {
				continue
			}
			if last[e.Group] == nil {
				last[e.Group] = slices.Repeat([]int64{-1}, len(dumps))
			}
			last[e.Group][r] = max(last[e.Group][r], e.Seq)
			if n := next[e.Group]; e.Seq > to[e.Group] && (n == nil || e.Seq < n.Seq) {
				next[e.Group] = e
			}
		}
	}
	groups := slices.Sorted(maps.Keys(next))
	for i, g := range groups {
		if i == maxBehind {
			return append(notes, fmt.Sprintf("in %d more groups members did not come as far as others",
				len(groups)-i))
		}
		var missing []string
		for r, n := range last[g] {
			if n >= 0 && n < next[g].Seq {
				missing = append(missing, strconv.Itoa(r))
			}
		}
		notes = append(notes, fmt.Sprintf("group %s: call %d, %s of %d elements, was issued by others but "+
			"not by rank %s: a job that hangs waits there", g, next[g].Seq, next[g].Name,
			Elements(next[g].In), strings.Join(missing[:min(len(missing), maxBehind)], ", ")))
	}
	return notes
}

// received sums the elements that each rank receives in each alltoall.
func (b *builder) received(dumps []*Dump) {
	b.outs = map[callID][]int64{}
	for r, d := range dumps {
		for i := range d.Entries {
			e := &d.Entries[i]
			if !strings.HasPrefix(e.Name, "all_to_all") {
				continue
			}
			id := callID{e.Group, e.Seq}
			if b.outs[id] == nil {
				b.outs[id] = make([]int64, len(dumps))
			}
			b.outs[id][r] = Elements(e.Out)
		}
	}
}

// split divides what a rank sends in an alltoall of unequal parts among the members, in proportion to what
// each receives in total: the recorder keeps only the sums. It returns nil if all receive the same.
func (b *builder) split(e *Entry, members []int32) []int64 {
	outs := b.outs[callID{e.Group, e.Seq}]
	if members == nil {
		for r := range outs {
			members = append(members, int32(r))
		}
	}
	total, equal := int64(0), true
	for _, m := range members {
		if int(m) >= len(outs) || m < 0 {
			return nil
		}
		total += outs[m]
		equal = equal && outs[m] == outs[members[0]]
	}
	in := Elements(e.In)
	if equal && in == outs[members[0]] || total == 0 || total > 1<<50 {
		return nil
	}
	splits := make([]int64, len(members))
	left := in
	for k, m := range members {
		splits[k] = min(int64(float64(in)*float64(outs[m])/float64(total)), left)
		left -= splits[k]
	}
	splits[len(splits)-1] += left
	b.guessed++
	return splits
}

// rank converts the dump of rank r to a list.
func (b *builder) rank(r int, d *Dump) error {
	list := workload.List{Name: fmt.Sprintf("rank%d", r)}
	entries := slices.Clone(d.Entries)
	slices.SortStableFunc(entries, func(x, y Entry) int { return cmp.Compare(x.Record, y.Record) })
	groups := map[string][]int32{}
	for _, g := range d.Groups {
		groups[g.Name] = g.Ranks
	}
	var open []workload.Step // messages until the entry that closes their launch
	for i := range entries {
		e := &entries[i]
		if e.Name == "coalesced" {
			list.Steps = append(list.Steps, torch.Launch(open)...)
			open = nil
			continue
		}
		s, ok := b.step(e, groups[e.Group], len(d.Groups) > 0)
		switch {
		case !ok:
		case e.P2P:
			open = append(open, s)
		default:
			list.Steps = append(append(list.Steps, torch.Launch(open)...), s)
			open = nil
		}
	}
	list.Steps = append(list.Steps, torch.Launch(open)...)
	b.P.Lists = append(b.P.Lists, list)
	return nil
}

// step says an entry as a step; ok is false for one that is left out.
func (b *builder) step(e *Entry, members []int32, known bool) (workload.Step, bool) {
	if !e.P2P && (e.Seq < b.from[e.Group] || e.Seq > b.to[e.Group]) {
		b.dropped++
		return workload.Step{}, false
	}
	n := int64(len(members))
	if !known || n == 0 {
		n = int64(len(b.P.Of))
		members = nil
	}
	root, typ := int32(0), e.InType
	switch e.Name {
	case "send":
		root = e.Dst
	case "recv":
		root, typ = e.Src, e.OutType
	}
	in, out := Elements(e.In), Elements(e.Out)
	if e.Name == "scatter" {
		out = in // the recorder has the rank's own part first
	}
	c, ok := torch.Translate(e.Name, typ, in, out, n, root, nil)
	if !ok {
		b.unknown++
		return workload.Step{}, false
	}
	if c.Func == coll.AllToAll {
		if c.Splits = b.split(e, members); c.Splits != nil {
			c.Count = 0
		}
	}
	c.Comm = b.Comm(e.Group, e.Desc, members)
	s := b.Issue(&c)
	if e.DurationMs > 0 && e.DurationMs < 1e9 {
		b.times[s.Call] = append(b.times[s.Call], e.DurationMs)
	}
	return s, true
}
