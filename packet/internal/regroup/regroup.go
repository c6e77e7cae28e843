// Package regroup reorders the queue pairs of a host as the HPCC simulator does after a link failed.
//
// In: when queue pairs began and ended, and their hash keys. Out: the active ones, in the order of the
// simulator's hash table, which is that of GNU's C++ library. It must not know hosts, links or frames.
package regroup

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/packet/internal/route"
	"github.com/simccl/simccl/packet/spec"
)

// Pair is a queue pair: its flow, what it is hashed by, and when it began and ended, in ps.
type Pair struct {
	Flow       int32
	Hash       uint64
	Begin, End int64
}

// never is the end of a pair that goes on.
const never = int64(1<<63 - 1)

// Of is the queue pair of a flow that has begun.
func Of(flow int32, f *spec.Flow, r *spec.FlowResult) Pair {
	p := Pair{flow, uint64(route.Address(f.Dst))<<32 | uint64(r.SrcPort)<<16 | uint64(f.Priority),
		int64(r.Start), never}
	if r.Done {
		p.End = int64(r.End)
	}
	return p
}

// Begun is by host the queue pairs of flows that have begun.
func Begun(flows []spec.Flow, results []spec.FlowResult, hosts int, hostOf []int32,
	begun func(flow int) bool) [][]Pair {
	pairs := make([][]Pair, hosts)
	for i := range flows {
		if f := &flows[i]; begun(i) {
			h := hostOf[f.Src]
			pairs[h] = append(pairs[h], Of(int32(i), f, &results[i]))
		}
	}
	return pairs
}

// sizes of the table: it grows to the next where there would be more pairs than buckets.
var sizes = []uint64{13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061,
	712697, 1447153, 2938679, 5967347, 12117689}

// bucket is pairs with equal remainders: the one that came last is the first.
type bucket struct {
	born  int // those born later are before it
	pairs []Pair
}

// table is a hash table that keeps pairs in one list.
type table struct {
	size    int // of sizes
	pairs   int
	born    int
	buckets map[uint64]*bucket
}

// Order lists those of some pairs that have not ended by a time, as the table has them then.
func Order(pairs []Pair, at int64) (flows []int32) {
	slices.SortStableFunc(pairs, func(a, b Pair) int { return cmp.Compare(a.Begin, b.Begin) })
	ends := slices.Clone(pairs)
	slices.SortStableFunc(ends, func(a, b Pair) int { return cmp.Compare(a.End, b.End) })
	t, over := table{buckets: map[uint64]*bucket{}}, 0
	for _, p := range pairs {
		for ; over < len(ends) && ends[over].End <= p.Begin; over++ {
			t.drop(ends[over])
		}
		t.insert(p)
	}
	for ; over < len(ends) && ends[over].End <= at; over++ {
		t.drop(ends[over])
	}
	for _, p := range t.list() {
		flows = append(flows, p.Flow)
	}
	return flows
}

// insert puts a pair before those of its bucket, or before all.
func (t *table) insert(p Pair) {
	if uint64(t.pairs) == sizes[t.size] && t.size+1 < len(sizes) {
		all := t.list()
		*t = table{size: t.size + 1, buckets: make(map[uint64]*bucket, len(all))}
		for _, p := range all {
			t.insert(p)
		}
	}
	k := p.Hash % sizes[t.size]
	b := t.buckets[k]
	if b == nil {
		b = &bucket{born: t.born}
		t.buckets[k] = b
		t.born++
	}
	b.pairs = append(b.pairs, p)
	t.pairs++
}

// drop removes a pair.
func (t *table) drop(p Pair) {
	k := p.Hash % sizes[t.size]
	b := t.buckets[k]
	if b == nil {
		return
	}
	if i := slices.IndexFunc(b.pairs, func(q Pair) bool { return q.Flow == p.Flow }); i >= 0 {
		b.pairs = slices.Delete(b.pairs, i, i+1)
		t.pairs--
	}
	if len(b.pairs) == 0 {
		delete(t.buckets, k)
	}
}

// list is all pairs in order.
func (t *table) list() (all []Pair) {
	buckets := make([]*bucket, 0, len(t.buckets))
	for _, b := range t.buckets {
		buckets = append(buckets, b)
	}
	slices.SortFunc(buckets, func(a, b *bucket) int { return b.born - a.born })
	for _, b := range buckets {
		for i := range b.pairs {
			all = append(all, b.pairs[len(b.pairs)-1-i])
		}
	}
	return all
}
