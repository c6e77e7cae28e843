package port

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// Ties orders the simultaneous arrivals of a switch: longest travel time first, then start of transmission
// (see package tiebreak). The i-th frame of Arrived came in at port From[i], whose link is In[From[i]].
type Ties struct {
	Config    *spec.Config
	Calendar  *tiebreak.Calendar
	Links     []Link
	In        []int32
	Arrived   []frames.Frame
	From      []uint16
	Full, Ack uint16
	Uniform   bool // all links of In have equal delay and rate

	ranks []uint64
}

// Untie sorts runs of keys of equal time; keys are already sorted by time.
func (x *Ties) Untie(keys []uint64) {
	for i := 1; i < len(keys); i++ {
		if !arrivals.Together(keys[i-1], keys[i]) {
			continue
		}
		from := i - 1
		for i++; i < len(keys) && arrivals.Together(keys[from], keys[i]); i++ {
		}
		x.untie(keys[from:i])
	}
}

// few is the number of frames up to which comparing pairs is faster than reading ranks.
const few = 3

// untie sorts keys of equal time: by stored ranks if all are from one batch, else by comparing pairs. If the
// order is certain, it is stored as a new batch of ranks.
func (x *Ties) untie(keys []uint64) {
	if len(keys) <= few {
		for i := 1; i < len(keys); i++ {
			for k := i; k > 0 && x.order(keys[k-1], keys[k]) > 0; k-- {
				keys[k-1], keys[k] = keys[k], keys[k-1]
			}
		}
		return
	}
	even, known := x.readRanks(keys)
	if !known || !x.sort(keys) {
		slices.Sort(keys)
		even, _ = x.readRanks(keys)
		even = x.compare(keys, even) && even
	}
	if !even {
		return
	}
	row := x.Calendar.Placed(len(keys))
	for i, k := range keys {
		x.Calendar.Put(row, x.number(k), i)
	}
}

// readRanks reads the rank of each frame's cause. even: all frames have equal travel times; known: all ranks
// are from one batch and can be compared.
func (x *Ties) readRanks(keys []uint64) (even, known bool) {
	x.ranks = x.ranks[:0]
	first := &x.Arrived[keys[0]&arrivals.Place]
	travels, rank, at := x.travels(keys[0]), uint64(0), int64(0)
	even, known = true, true
	for i, k := range keys {
		f := &x.Arrived[k&arrivals.Place]
		if !x.Uniform || f.Size != first.Size {
			even = even && x.travels(k) == travels
		}
		t, began := x.Calendar.Rank(tiebreak.Number(f.Tag))
		if i == 0 {
			rank, at = t, began
		}
		if began != at {
			t = 0
		}
		known = known && t != 0 && tiebreak.Together(t, rank)
		x.ranks = append(x.ranks, t)
	}
	return even, even && known
}

// sort sorts keys by rank. It returns false if two ranks are equal.
func (x *Ties) sort(keys []uint64) (distinct bool) {
	ranks := x.ranks[:len(keys)]
	distinct = true
	for i := 1; i < len(ranks); i++ {
		t, key, k := ranks[i], keys[i], i
		for ; k > 0 && ranks[k-1] > t; k-- {
			ranks[k], keys[k] = ranks[k-1], keys[k-1]
		}
		ranks[k], keys[k] = t, key
		distinct = distinct && (k == 0 || ranks[k-1] != t)
	}
	return distinct
}

// compare sorts keys by comparing pairs, and reports whether the order of every pair is known.
func (x *Ties) compare(keys []uint64, even bool) (all bool) {
	ranks := x.ranks[:len(keys)]
	all = true
	for i := 1; i < len(keys); i++ {
		t, key, k := ranks[i], keys[i], i
		for ; k > 0; k-- {
			order := 0
			if u := ranks[k-1]; t != 0 && u != t && tiebreak.Together(t, u) &&
				(even || x.travels(keys[k-1]) == x.travels(key)) {
				order = cmp.Compare(u, t)
			} else {
				order = x.order(keys[k-1], key)
			}
			all = all && order != 0
			if order <= 0 {
				break
			}
			ranks[k], keys[k] = ranks[k-1], keys[k-1]
		}
		ranks[k], keys[k] = t, key
	}
	return all
}

// order returns a positive number if key j comes first, a negative one if i does, 0 if that is unknown.
func (x *Ties) order(i, j uint64) int {
	if a, b := x.travels(i), x.travels(j); a != b {
		if a < b {
			return 1
		}
		return -1
	}
	return x.Calendar.Order(x.number(i), x.number(j))
}

func (x *Ties) number(key uint64) tiebreak.Number {
	return tiebreak.Number(x.Arrived[key&arrivals.Place].Tag)
}

// travels returns a frame's travel time in ps.
func (x *Ties) travels(key uint64) int64 {
	i := key & arrivals.Place
	return x.Links[x.In[x.From[i]]].Travel(x.Config, x.Arrived[i].Size, x.Full, x.Ack)
}

// Uniform reports whether some links have equal delay and rate.
func Uniform(links []Link, some []int32) bool {
	return !slices.ContainsFunc(some, func(id int32) bool {
		a, b := &links[id], &links[some[0]]
		return a.Delay != b.Delay || a.Rate != b.Rate
	})
}
