package streams

import "math"

// Running calls share resources max-min: on a resource whose users together need more than all of it, users
// that need less than an equal share get their need, and the others share the rest equally. A call's rate is
// the least that any of its resources allows. A resource with room for all its users slows none of them, so a
// change affects only the calls that are connected through full resources.

// resource is a shared thing with capacity 1: a link, for example.
type resource struct {
	sum   float64 // sum of its users' needs when two share it
	bytes float64 // bytes: sum of the needs by bytes; more: sum of the additions by bursts for two users
	more  float64
	users []use
	stamp int32 // number of the last refill that it took part in
	room  float64
	open  float64 // sum of the unsettled users' needs per unit of level
}

// use is a task on a resource; need is the index of that need in the task.
type use struct {
	task int32
	need int32
}

// needed returns the sum of the users' needs, given their number.
func (r *resource) needed() float64 {
	if m := len(r.users); m > 2 {
		return r.bytes + r.more*2/float64(m)
	}
	return r.sum
}

// add adds a need to the sums (sign 1) or removes it (-1).
func (r *resource) add(n *Need, sign float64) {
	bytes := n.Bytes
	if bytes == 0 {
		bytes = n.Share
	}
	r.sum += sign * n.Share
	r.bytes += sign * bytes
	r.more += sign * math.Max(0, n.Share-bytes)
}

// fluid is the max-min sharing of all resources.
type fluid struct {
	r         *run
	resources []resource
	dirty     []int32 // resources whose users changed
	changed   []int32 // tasks whose own rate bound changed
	stamp     int32
	tasks     []int32 // tasks of the connected part that is being filled
	tight     []int32 // full resources of that part
}

// slackSum is the largest sum of needs at which a resource slows none of its users.
const slackSum = 1 + 1e-9

// enter adds a task to its resources.
func (f *fluid) enter(t int32) {
	x := &f.r.tasks[t]
	x.places = x.places[:0]
	for i := range x.needs {
		n := &x.needs[i]
		r := &f.resources[n.Resource]
		x.places = append(x.places, int32(len(r.users)))
		r.users = append(r.users, use{t, int32(i)})
		r.add(n, 1)
	}
	f.change(t)
}

// leave removes a task from its resources.
func (f *fluid) leave(t int32) {
	x := &f.r.tasks[t]
	for i := range x.needs {
		n := &x.needs[i]
		r := &f.resources[n.Resource]
		if r.needed() > slackSum {
			f.dirty = append(f.dirty, n.Resource)
		}
		last := len(r.users) - 1
		if at := int(x.places[i]); at < last {
			moved := r.users[last]
			r.users[at] = moved
			f.r.tasks[moved.task].places[moved.need] = int32(at)
		}
		r.users = r.users[:last]
		if r.add(n, -1); last == 0 {
			r.sum, r.bytes, r.more = 0, 0, 0
		}
	}
}

// change records that a task's own rate bound has changed.
func (f *fluid) change(t int32) {
	if x := &f.r.tasks[t]; !x.changed {
		x.changed = true
		f.changed = append(f.changed, t)
	}
}

// refill computes the rates that follow from the recorded changes.
func (f *fluid) refill() {
	if len(f.dirty) == 0 && len(f.changed) == 0 {
		return
	}
	f.stamp++
	for _, t := range f.changed {
		x := &f.r.tasks[t]
		if x.changed = false; !x.running || x.stamp == f.stamp {
			continue
		}
		if old := x.bound; x.rate > 0 && x.kind == opTask { // another resource may limit it anyway
			if x.bound = f.r.bound(t); x.bound == old || x.rate < math.Min(old, x.bound)*(1-1e-9) {
				continue
			}
		}
		f.gather(t)
	}
	for _, i := range f.dirty {
		for k := 0; k < len(f.resources[i].users); k++ {
			if t := f.resources[i].users[k].task; f.r.tasks[t].stamp != f.stamp {
				f.gather(t)
			}
		}
	}
	f.changed, f.dirty = f.changed[:0], f.dirty[:0]
}

// gather collects the tasks and full resources that are connected to a task.
func (f *fluid) gather(t int32) {
	f.tasks, f.tight = append(f.tasks[:0], t), f.tight[:0]
	f.r.tasks[t].stamp = f.stamp
	for i := 0; i < len(f.tasks); i++ {
		x := &f.r.tasks[f.tasks[i]]
		x.weight = 0
		for k := range x.needs {
			n := &x.needs[k]
			r := &f.resources[n.Resource]
			if r.needed() <= slackSum {
				continue
			}
			x.weight = math.Max(x.weight, n.beside(len(r.users)))
			if r.stamp == f.stamp {
				continue
			}
			r.stamp = f.stamp
			f.tight = append(f.tight, n.Resource)
			for _, u := range r.users {
				if y := &f.r.tasks[u.task]; y.stamp != f.stamp {
					y.stamp = f.stamp
					f.tasks = append(f.tasks, u.task)
				}
			}
		}
	}
	f.fill()
}

// fill raises the level, the share of each task on the resource that it needs most, until every task has
// reached its own bound or uses an exhausted resource.
func (f *fluid) fill() {
	for _, i := range f.tight {
		r := &f.resources[i]
		r.room, r.open = 1, 0
	}
	for _, t := range f.tasks {
		x := &f.r.tasks[t]
		x.bound = f.r.bound(t)
		x.settled = len(f.tight) == 0 || x.weight == 0
		if x.settled {
			f.r.setRate(t, x.bound)
			continue
		}
		for k := range x.needs {
			n := &x.needs[k]
			if r := &f.resources[n.Resource]; r.stamp == f.stamp {
				r.open += n.beside(len(r.users)) / x.weight
			}
		}
	}
	for left := f.unsettled(); left > 0; left = f.unsettled() {
		level := math.Inf(1)
		for _, i := range f.tight {
			if r := &f.resources[i]; r.open > 1e-12 {
				level = math.Min(level, math.Max(0, r.room)/r.open)
			}
		}
		if f.bounded(level) {
			continue
		}
		f.usedUp(level)
	}
}

// unsettled drops the settled tasks from the list and returns the number of the others.
func (f *fluid) unsettled() int {
	n := 0
	for _, t := range f.tasks {
		if !f.r.tasks[t].settled {
			f.tasks[n] = t
			n++
		}
	}
	f.tasks = f.tasks[:n]
	return n
}

// bounded settles the tasks whose own bound is at most the level, and reports whether there were any.
func (f *fluid) bounded(level float64) bool {
	found := false
	for _, t := range f.tasks {
		if x := &f.r.tasks[t]; float64(x.bound*x.weight) <= level {
			f.settle(t, x.bound)
			found = true
		}
	}
	return found
}

// usedUp settles the tasks of the resources that are exhausted at a level.
func (f *fluid) usedUp(level float64) {
	for _, i := range f.tight {
		r := &f.resources[i]
		if r.open <= 1e-12 || math.Max(0, r.room)/r.open > level*(1+1e-12) {
			continue
		}
		for _, u := range r.users {
			if x := &f.r.tasks[u.task]; !x.settled {
				f.settle(u.task, level/x.weight)
			}
		}
		r.open = 0
	}
}

// settle fixes a task's rate and removes its needs from the open sums.
func (f *fluid) settle(t int32, rate float64) {
	x := &f.r.tasks[t]
	x.settled = true
	for k := range x.needs {
		n := &x.needs[k]
		if r := &f.resources[n.Resource]; r.stamp == f.stamp {
			need := n.beside(len(r.users))
			r.room -= float64(need * rate)
			r.open -= need / x.weight
		}
	}
	f.r.setRate(t, rate)
}
