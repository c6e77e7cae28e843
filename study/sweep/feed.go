package sweep

import (
	"sync"
	"time"
)

// feed hands points out to workers, which take them themselves: none waits for another.
// Each has a stretch of the points, since neighbours share a machine that is loaded at the
// first of them; a worker that has none left takes half of the longest stretch.
type feed struct {
	mu     sync.Mutex
	jobs   [][]job   // by worker
	claims *claims   // nil where points are dealt by shard
	end    time.Time // zero: none
	err    error     // why points are left
}

// newFeed distributes points to n workers in equal consecutive parts.
func newFeed(jobs []job, n int) *feed {
	f := &feed{jobs: make([][]job, n)}
	for i := range n {
		f.jobs[i] = jobs[i*len(jobs)/n : (i+1)*len(jobs)/n]
	}
	return f
}

// next returns the next point of worker i; ok is false if there is none, or the time is used up.
func (f *feed) next(i int) (job, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.err == nil && f.refill(i) {
		j := f.jobs[i][0]
		if !f.end.IsZero() && time.Now().After(f.end) {
			f.err = errLeftOver
			break
		}
		f.jobs[i] = f.jobs[i][1:]
		if f.claims == nil {
			return j, true
		}
		var mine bool
		if mine, f.err = f.claims.take(j.key); mine && f.err == nil {
			return j, true
		}
	}
	return job{}, false
}

// refill sees that worker i has points, and reports whether there are any.
func (f *feed) refill(i int) bool {
	if len(f.jobs[i]) > 0 {
		return true
	}
	longest := 0
	for k := range f.jobs {
		if len(f.jobs[k]) > len(f.jobs[longest]) {
			longest = k
		}
	}
	from := f.jobs[longest]
	f.jobs[longest], f.jobs[i] = from[:len(from)/2], from[len(from)/2:]
	return len(f.jobs[i]) > 0
}
