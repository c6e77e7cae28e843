package streams

import (
	"math"

	"github.com/simccl/simccl/internal/maxmin"
)

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
	stamp int32 // number of the last refill that it took part in, full
	at    int32 // its number in that refill's filling
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
	filling   maxmin.Filling[float64]
}

// rounding is the relative error of sums of needs.
const rounding = 1e-12

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

// gather collects the tasks and full resources that are connected to a task, and fills them.
func (f *fluid) gather(t int32) {
	f.tasks = append(f.tasks[:0], t)
	f.r.tasks[t].stamp = f.stamp
	f.filling.Clear()
	for i := 0; i < len(f.tasks); i++ {
		x := &f.r.tasks[f.tasks[i]]
		for k := range x.needs {
			n := &x.needs[k]
			r := &f.resources[n.Resource]
			if r.stamp == f.stamp || r.needed() <= slackSum {
				continue
			}
			r.stamp, r.at = f.stamp, f.filling.Resource(1)
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

// fill sets the rates of the gathered tasks. A task's level is its share of the resource that it needs most,
// so tasks that need different amounts of the same resource get equal parts of it.
func (f *fluid) fill() {
	for _, t := range f.tasks {
		x := &f.r.tasks[t]
		x.bound = f.r.bound(t)
		x.most = f.most(x)
		f.filling.Task(float64(x.bound * x.most))
		for k := range x.needs {
			n := &x.needs[k]
			if r := &f.resources[n.Resource]; r.stamp == f.stamp {
				f.filling.Use(r.at, n.beside(len(r.users))/x.most)
			}
		}
	}
	f.filling.Fill()
	for i, t := range f.tasks {
		x := &f.r.tasks[t]
		if level, own := f.filling.Level(int32(i)); own {
			f.r.setRate(t, x.bound)
		} else {
			f.r.setRate(t, level/x.most)
		}
	}
}

// most returns the largest need of a task for the full resources.
func (f *fluid) most(x *task) float64 {
	most := 0.0
	for k := range x.needs {
		n := &x.needs[k]
		if r := &f.resources[n.Resource]; r.stamp == f.stamp {
			most = math.Max(most, n.beside(len(r.users)))
		}
	}
	return most
}
