// Package maxmin shares resources max-min fairly by progressive filling (Bertsekas and Gallager, Data
// Networks, 2nd edition, 6.5.2): the levels of all tasks rise together, and a task stops at its own bound or
// when a resource that it uses is used up. It is the only such loop here: job/streams shares links by it, and
// the rates of sim/internal/fluid, which follow a change from link to link, are held against it.
//
// In: resources with room; tasks with bounds, which use weight times their level of each resource. Out: the
// level of each task. Numbers are integers or floats.
//
// Example: on resources of 10 and 4, task a uses both and task b the first, with weight 1. The second is used
// up at level 4, so a stops there; b goes on to 10 - 4 = 6.
package maxmin

// Number is the type of levels, weights and room.
type Number interface{ ~int64 | ~float64 }

// Filling is one progressive filling: Clear, the resources, each task followed by its uses, Fill, Level.
// Rounding is what Least and Eps say.
type Filling[N Number] struct {
	// Least is the lowest level of a task, whatever the room: 1 for integers, whose shares round down to 0.
	Least N
	// Eps is the relative error of levels that are taken as equal, and the sum of weights that is taken as
	// none: 0 for integers.
	Eps N

	resources []resource[N]
	tasks     []task[N]
	uses      []use[N]
	open      []int32 // tasks that still rise
}

type resource[N Number] struct {
	room        N // left by the tasks that have stopped
	open        N // sum of the weights of the others
	level       N // at which it is used up
	first, last int32
}

type task[N Number] struct {
	bound, level N
	from, to     int32 // its uses
	stopped      bool
}

// use is a task on a resource; next is the resource's next use, -1 for none.
type use[N Number] struct {
	weight         N
	resource, task int32
	next           int32
}

// Clear removes all resources and tasks.
func (f *Filling[N]) Clear() { f.resources, f.tasks, f.uses = f.resources[:0], f.tasks[:0], f.uses[:0] }

// Resource adds a resource and returns its number, from 0.
func (f *Filling[N]) Resource(room N) int32 {
	f.resources = append(f.resources, resource[N]{room: room, first: -1, last: -1})
	return int32(len(f.resources) - 1)
}

// Task adds a task and returns its number, from 0.
func (f *Filling[N]) Task(bound N) int32 {
	at := int32(len(f.uses))
	f.tasks = append(f.tasks, task[N]{bound: bound, from: at, to: at})
	return int32(len(f.tasks) - 1)
}

// Use adds a use to the task that was added last.
func (f *Filling[N]) Use(resource int32, weight N) {
	t, at := int32(len(f.tasks)-1), int32(len(f.uses))
	f.uses = append(f.uses, use[N]{weight: weight, resource: resource, task: t, next: -1})
	f.tasks[t].to++
	r := &f.resources[resource]
	if r.open += weight; r.first < 0 {
		r.first = at
	} else {
		f.uses[r.last].next = at
	}
	r.last = at
}

// Level returns a task's level, and whether it is its own bound.
func (f *Filling[N]) Level(t int32) (level N, own bool) {
	x := &f.tasks[t]
	return x.level, x.level == x.bound
}

// Fill finds the levels. A round stops the tasks whose bounds are at most the level at which the first
// resource is used up, or, without any, the tasks of the resources that are used up there. Equal resources
// are used up in the same round, so the order in which they were added does not show.
func (f *Filling[N]) Fill() {
	f.open = f.open[:0]
	for t := range f.tasks {
		f.open = append(f.open, int32(t))
	}
	for len(f.open) > 0 {
		level, limited := f.next()
		if !f.stopBounded(level, limited) {
			f.useUp(level)
		}
		n := 0
		for _, t := range f.open {
			if !f.tasks[t].stopped {
				f.open[n] = t
				n++
			}
		}
		f.open = f.open[:n]
	}
}

// next returns the level at which the next resource is used up; limited is false if there is none.
func (f *Filling[N]) next() (level N, limited bool) {
	for i := range f.resources {
		r := &f.resources[i]
		if r.open <= f.Eps {
			continue
		}
		if r.level = max(f.Least, r.room/r.open); !limited || r.level < level {
			level, limited = r.level, true
		}
	}
	return level, limited
}

// stopBounded stops the tasks whose bounds are at most a level, and reports whether there were any.
func (f *Filling[N]) stopBounded(level N, limited bool) bool {
	found := false
	for _, t := range f.open {
		if x := &f.tasks[t]; !limited || x.bound <= level {
			f.stop(t, x.bound)
			found = true
		}
	}
	return found
}

// useUp stops the tasks of the resources that are used up at a level.
func (f *Filling[N]) useUp(level N) {
	for i := range f.resources {
		r := &f.resources[i]
		if r.open <= f.Eps || r.level > level+N(level*f.Eps) {
			continue
		}
		for u := r.first; u >= 0; u = f.uses[u].next {
			if t := f.uses[u].task; !f.tasks[t].stopped {
				f.stop(t, level)
			}
		}
		r.open = 0
	}
}

// stop fixes a task's level.
func (f *Filling[N]) stop(t int32, level N) {
	x := &f.tasks[t]
	x.stopped, x.level = true, level
	for i := x.from; i < x.to; i++ {
		u := &f.uses[i]
		r := &f.resources[u.resource]
		r.room -= N(u.weight * level)
		r.open -= u.weight
	}
}
