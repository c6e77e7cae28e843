package rebuild

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/kineto"
)

// join is one operation of a communicator with the members that recorded it.
type join struct {
	parts []part
}

// part is one member's kernel of a collective that was matched across ranks.
type part struct {
	r    *rank
	op   int32
	call int32 // index into the operation's comms
}

func (p part) start() int64 { return p.r.ops[p.op].start() - p.r.shift }
func (p part) end() int64   { return p.r.ops[p.op].end() - p.r.shift }

// joinKey names an operation: the n-th collective of a communicator or the n-th
// message of a pair.
type joinKey struct {
	comm, src, dst int32
	n              int
}

// joins matches the calls of all ranks. Recordings begin and end at the same steps,
// so the n-th call of one is the n-th of the others.
func (j *job) joins() []join {
	at := map[joinKey]int{}
	var out []join
	for _, r := range j.ranks {
		counts := map[joinKey]int{}
		for i := range r.ops {
			for k := range r.ops[i].comms {
				c := &r.ops[i].comms[k]
				key := joinKey{comm: c.comm, src: -1, dst: -1}
				switch c.call.Func {
				case coll.Send:
					key.src, key.dst = c.member, c.call.Peer
				case coll.Recv:
					key.src, key.dst = c.call.Peer, c.member
				}
				n := counts[key]
				counts[key]++
				if key.src >= 0 && key.src == key.dst {
					n /= 2
				}
				key.n = n
				x, known := at[key]
				if !known {
					x = len(out)
					at[key] = x
					out = append(out, join{})
				}
				out[x].parts = append(out[x].parts, part{r, int32(i), int32(k)})
			}
		}
	}
	return out
}

// align finds how clocks differ: all members of a synchronising collective end at
// nearly the same time. Times are compared with the first recorded rank that took
// part in most.
func (j *job) align() {
	joins := j.joins()
	diffs := map[*rank][]int64{}
	for i := range joins {
		var base *part
		for k := range joins[i].parts {
			p := &joins[i].parts[k]
			f := p.r.ops[p.op].comms[p.call].call.Func
			if f != coll.AllReduce && f != coll.AllGather && f != coll.ReduceScatter && f != coll.AllToAll {
				break
			}
			if p.r == j.ranks[0] {
				base = p
			} else if base != nil {
				diffs[p.r] = append(diffs[p.r], p.end()-base.end())
			}
		}
	}
	for _, r := range j.ranks {
		d := diffs[r]
		c := Clock{Rank: r.rank, Samples: len(d)}
		if len(d) > 0 {
			c.Offset = median(d)
			// Ends differ by microseconds on one clock; only more is a difference of clocks.
			if max(c.Offset, -c.Offset) > sameClock {
				r.shift = c.Offset
			} else {
				c.Offset = 0
			}
			for k := range d {
				d[k] = max(d[k]-c.Offset, c.Offset-d[k])
			}
			c.Residual = median(d)
		}
		j.res.Clocks = append(j.res.Clocks, c)
	}
}

// sameClock is by how many nanoseconds the ends of a collective differ on ranks that
// share a clock.
const sameClock = 50_000

func median(v []int64) int64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}

// alone computes the time that each operation takes alone: of calls from the moment when the last rank has
// begun, of kernels without a concurrent collective.
func (j *job) alone() {
	joins := j.joins()
	own := map[string][]int64{}
	key := func(p part) string {
		c := &p.r.ops[p.op].comms[p.call]
		return shapeKey(c)
	}
	for i := range joins {
		latest, first := int64(-1<<62), int64(1<<62)
		for _, p := range joins[i].parts {
			latest, first = max(latest, p.start()), min(first, p.end())
		}
		if t := first - latest; t > 0 {
			for _, p := range joins[i].parts {
				k := key(p)
				own[k] = append(own[k], t)
			}
		}
	}
	for i := range joins {
		for _, p := range joins[i].parts {
			if v := own[key(p)]; len(v) > 0 {
				p.r.ops[p.op].comms[p.call].call.Recorded = units.Time(median(v)) * 1000
			}
		}
	}
	for _, r := range j.ranks {
		r.scaleBySame()
		r.timing()
	}
}

// twinKey identifies kernels that do equal work: name, launch dimensions and bytes.
type twinKey struct {
	name            int32
	blocks, threads int32
	bytes           int64
}

// Slow-down of a kernel by a concurrent collective: the measured mean (arXiv 2507.03114), and the assumed
// maximum, 2, which a persistent kernel of one wave reaches when it takes a second one. With a class's
// beside_unknown of 1.35 instead, the recorded steps of four H200 change from -3.9 % to -5.9 and -5.6 %.
const (
	meanSlow = 1.19
	mostSlow = 2.0
)

// scaleBySame replaces the time of a kernel that ran beside a collective by the median time of the same
// kernel without one. A kernel of one name and grid may multiply matrices of many shapes (persistent kernels
// have one CTA per SM), so only kernels whose time is possible after removal of the slow-down count as the
// same. Without such a kernel the mean slow-down is removed.
func (r *rank) scaleBySame() {
	var comms [][2]int64
	for i := range r.ops {
		if g := &r.ops[i]; g.op.Class == kineto.NCCL || g.op.Class == kineto.Foreign {
			comms = append(comms, [2]int64{g.start(), g.end()})
		}
	}
	slices.SortFunc(comms, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	covered := func(from, to int64) int64 {
		at, _ := slices.BinarySearchFunc(comms, from, func(c [2]int64, t int64) int {
			return cmp.Compare(c[0], t)
		})
		sum := int64(0)
		for i := max(at-8, 0); i < len(comms) && comms[i][0] < to; i++ {
			if b, e := max(from, comms[i][0]), min(to, comms[i][1]); e > b {
				sum += e - b
				from = e
			}
		}
		return sum
	}
	free := map[twinKey][]int64{} // sorted
	beside := map[int]int64{}
	for i := range r.ops {
		g := &r.ops[i]
		if g.op.Class == kineto.NCCL || g.op.Class == kineto.Foreign {
			continue
		}
		k := twinKey{g.op.Name, g.op.Blocks, g.op.Threads, g.op.Bytes}
		if c := covered(g.start(), g.end()); c > 0 {
			beside[i] = c
		} else {
			free[k] = append(free[k], g.op.Dur)
		}
	}
	for _, v := range free { //lint:sorted each list by itself
		slices.Sort(v)
	}
	without := 0
	for i := range r.ops {
		c, ok := beside[i]
		if !ok {
			continue
		}
		g := &r.ops[i]
		v, ok := twin(free[twinKey{g.op.Name, g.op.Blocks, g.op.Threads, g.op.Bytes}], g.op.Dur, c)
		if !ok {
			without++
		}
		g.alone = v
	}
	if without > 0 {
		r.note("%d kernels ran beside collectives, and none of the same name and grid ran without: %g is "+
			"taken out of the part that overlapped", without, meanSlow)
	}
}

// twin estimates the time alone of a kernel that took dur, of which it ran for covered beside a collective.
// free is the sorted times of the same kernel without one. Among those within the bounds that a slow-down
// allows it takes the nearest to the time without the mean slow-down, and returns the median of those within
// twinSpread of it. ok is false if there is none.
func twin(free []int64, dur, covered int64) (alone int64, ok bool) {
	without := func(slow float64) int64 { return dur - covered + int64(float64(covered)/slow) }
	expected, shortest, longest := without(meanSlow), without(mostSlow), int64(float64(dur)*twinSpread)
	nearest := int64(-1)
	for _, t := range free {
		if float64(t)*twinSpread >= float64(shortest) && t <= longest &&
			(nearest < 0 || max(t-expected, expected-t) < max(nearest-expected, expected-nearest)) {
			nearest = t
		}
	}
	if nearest < 0 {
		return expected, false
	}
	lo, _ := slices.BinarySearch(free, int64(float64(nearest)/twinSpread))
	hi, _ := slices.BinarySearch(free, int64(float64(nearest)*twinSpread)+1)
	return min(dur, median(free[lo:hi])), true
}

// twinSpread is by how much the times of one kernel on one shape differ.
const twinSpread = 1.15
