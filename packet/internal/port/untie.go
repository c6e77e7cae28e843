package port

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// Ties puts frames that arrived at a switch at one instant in the order of events: what travelled longer
// first, then what began first. Of Arrived each came by the port of From, and that is a link of In.
type Ties struct {
	Config    *spec.Config
	Calendar  *tiebreak.Calendar
	Links     []Link
	In        []int32
	Arrived   []frames.Frame
	From      []uint16
	Full, Ack uint16
	Uniform   bool // links of In are equally long and fast

	turns []uint64
}

// Untie puts keys of equal times in order.
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

// few is up to how many frames of one time are compared at once: to look for turns takes longer.
const few = 3

// untie is Untie for keys of one time.
func (x *Ties) untie(keys []uint64) {
	if len(keys) <= few {
		for i := 1; i < len(keys); i++ {
			for k := i; k > 0 && x.order(keys[k-1], keys[k]) > 0; k-- {
				keys[k-1], keys[k] = keys[k], keys[k-1]
			}
		}
		return
	}
	even, known := x.look(keys)
	if !known || !x.sort(keys) {
		slices.Sort(keys)
		even, _ = x.look(keys)
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

// look finds the turns, and says that all travelled equally long, and that all turns are known and of one
// row.
func (x *Ties) look(keys []uint64) (even, known bool) {
	x.turns = x.turns[:0]
	first := &x.Arrived[keys[0]&arrivals.Place]
	travels, turn, at := x.travels(keys[0]), uint64(0), int64(0)
	even, known = true, true
	for i, k := range keys {
		f := &x.Arrived[k&arrivals.Place]
		if !x.Uniform || f.Size != first.Size {
			even = even && x.travels(k) == travels
		}
		t, began := x.Calendar.Turn(tiebreak.Number(f.Tag))
		if i == 0 {
			turn, at = t, began
		}
		if began != at {
			t = 0
		}
		known = known && t != 0 && tiebreak.Together(t, turn)
		x.turns = append(x.turns, t)
	}
	return even, even && known
}

// sort sorts keys by turns; false: two are equal.
func (x *Ties) sort(keys []uint64) (distinct bool) {
	turns := x.turns[:len(keys)]
	distinct = true
	for i := 1; i < len(turns); i++ {
		t, key, k := turns[i], keys[i], i
		for ; k > 0 && turns[k-1] > t; k-- {
			turns[k], keys[k] = turns[k-1], keys[k-1]
		}
		turns[k], keys[k] = t, key
		distinct = distinct && (k == 0 || turns[k-1] != t)
	}
	return distinct
}

// compare sorts keys by comparing two at a time, and says that of each two it is known which is first. If
// they are even, all travelled equally long.
func (x *Ties) compare(keys []uint64, even bool) (all bool) {
	turns := x.turns[:len(keys)]
	all = true
	for i := 1; i < len(keys); i++ {
		t, key, k := turns[i], keys[i], i
		for ; k > 0; k-- {
			order := 0
			if u := turns[k-1]; t != 0 && u != t && tiebreak.Together(t, u) &&
				(even || x.travels(keys[k-1]) == x.travels(key)) {
				order = cmp.Compare(u, t)
			} else {
				order = x.order(keys[k-1], key)
			}
			all = all && order != 0
			if order <= 0 {
				break
			}
			turns[k], keys[k] = turns[k-1], keys[k-1]
		}
		turns[k], keys[k] = t, key
	}
	return all
}

// order is positive where the second of two comes first, negative where the first does.
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

// travels is how long a frame was on its way.
func (x *Ties) travels(key uint64) int64 {
	i := key & arrivals.Place
	return x.Links[x.In[x.From[i]]].Travel(x.Config, x.Arrived[i].Size, x.Full, x.Ack)
}

// Uniform reports whether some links are equally long and fast.
func Uniform(links []Link, some []int32) bool {
	return !slices.ContainsFunc(some, func(id int32) bool {
		a, b := &links[id], &links[some[0]]
		return a.Delay != b.Delay || a.Rate != b.Rate
	})
}
