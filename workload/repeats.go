package workload

import "slices"

// gram is the length of the step sequences by which repetitions are found, and the shortest repetition that
// is written.
const gram = 4

// repeats finds, in a list, steps that were there before: equal, with dependencies as far back.
type repeats struct {
	tokens []int32 // by step: equal steps have equal ones
	at     map[[gram]int32][]int32
}

// shape is the content of a step without its position: dependencies are relative.
type shape struct {
	kind                      Kind
	stream, call, event, work int32
	time                      int64
	deps                      string
}

// newRepeats numbers the steps of a list; a list with the times of a recording has none that is again.
func newRepeats(steps []Step) *repeats {
	r := &repeats{}
	if slices.ContainsFunc(steps, func(s Step) bool { return s.Recorded > 0 }) {
		return r
	}
	r.tokens, r.at = make([]int32, len(steps)), map[[gram]int32][]int32{}
	known := map[shape]int32{}
	var back []byte
	for i := range steps {
		s := &steps[i]
		back = back[:0]
		for _, d := range s.Deps {
			n := int32(i) - d
			back = append(back, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
		}
		x := shape{s.Kind, s.Stream, s.Call, s.Event, s.Work, int64(s.Time), string(back)}
		t, ok := known[x]
		if !ok {
			t = int32(len(known))
			known[x] = t
		}
		r.tokens[i] = t
	}
	return r
}

// tried is the largest number of earlier positions that are compared.
const tried = 16

// before returns the longest earlier run of steps that equals the steps from n on, up to end; the run may
// overlap them. count is 0 if no run is long enough.
func (r *repeats) before(n, end int) (from, count int) {
	if r.tokens == nil || end-n < gram {
		return 0, 0
	}
	places := r.at[[gram]int32(r.tokens[n:])]
	for k := len(places) - 1; k >= max(0, len(places)-tried); k-- {
		p, c := int(places[k]), gram
		for n+c < end && r.tokens[p+c] == r.tokens[n+c] {
			c++
		}
		if c > count {
			from, count = p, c
		}
	}
	return from, count
}

// add indexes the sequences that begin at steps from to to-1, so that later steps can repeat them.
func (r *repeats) add(from, to int) {
	if r.tokens == nil {
		return
	}
	for i := from; i < to && i+gram <= len(r.tokens); i++ {
		key := [gram]int32(r.tokens[i:])
		if list := r.at[key]; len(list) < 2*tried {
			r.at[key] = append(list, int32(i))
		} else {
			copy(list, list[1:])
			list[len(list)-1] = int32(i)
		}
	}
}
