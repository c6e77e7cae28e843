package gen

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// reduction sums gradients up over data parallel ranks, in buckets as they become ready
// (Li et al., PyTorch Distributed, 2020).
type reduction struct {
	w    *writer
	held [2]int64 // elements: dense, of experts
	late []part   // buckets that wait for the end of the backward pass
	done []int32  // the calls
	made []part   // buckets, for the parameters that ZeRO 1 gathers
}

// part is a bucket of gradients: its elements, of experts or of all other layers.
type part struct {
	experts  bool
	elements int64
}

func (p part) family() group {
	if p.experts {
		return expertData
	}
	return data
}

// reduce notes that the gradients of a unit are ready.
func (w *writer) reduce(a action, u unit) {
	if a.micro != w.g.m-1 && (w.g.c.FSDP < 2 || w.g.c.PP > 1) {
		return
	}
	if w.g.c.FSDP >= 2 {
		w.fully.reduce(u)
		return
	}
	r := &w.grads
	r.held[0] += u.dense
	r.held[1] += u.experts
	r.close(w.g.c.Bucket)
}

// close issues what has come to the capacity of a bucket.
func (r *reduction) close(limit units.Bytes) {
	for i := range r.held {
		if r.held[i] == 0 || units.Bytes(r.held[i])*r.w.g.c.GradType.Size() < limit {
			continue
		}
		b := part{i == 1, r.held[i]}
		r.held[i] = 0
		if r.w.g.c.NoOverlap {
			r.late = append(r.late, b)
		} else {
			r.issue(b)
		}
	}
}

func (r *reduction) issue(b part) {
	w := r.w
	r.made = append(r.made, b)
	if w.g.c.FSDP == 1 {
		r.scatter(b.family(), b.elements)
		return
	}
	r.add(w.issue(b.family(), "gradients", coll.AllReduce, w.g.c.GradType, b.elements, 0, w.wait...))
}

// scatter sums gradients up, each rank those of its part, and with the ranks that have the same part.
func (r *reduction) scatter(f group, elements int64) {
	w := r.w
	n := share(elements, int64(max(w.size[f], 1)))
	step := w.issue(f, "gradients", coll.ReduceScatter, w.g.c.GradType, n, 0, w.wait...)
	deps := w.wait
	if step >= 0 {
		deps = []int32{step}
	}
	r.add(step)
	r.add(w.issue(replicas, "gradients", coll.AllReduce, w.g.c.GradType, n, 0, deps...))
}

func (r *reduction) add(step int32) {
	if step >= 0 {
		r.done = append(r.done, step)
	}
}

// flush issues what is left.
func (r *reduction) flush() {
	r.close(1)
	for _, b := range r.late {
		r.issue(b)
	}
	r.late = nil
}

// tied sums the gradients of the embedding that the first and the last stage share, after
// those of data parallel ranks; with ZeRO 1 each rank its part.
func (r *reduction) tied() {
	w, c := r.w, r.w.g.c
	if c.Tied {
		r.add(w.issue(ends, "embedding", coll.AllReduce, c.GradType, share(c.Vocab*c.Hidden/int64(c.TP),
			w.shards(data)), 0, r.done...))
	}
}

// gather hands out the parameters that each rank has updated (ZeRO 1).
func (r *reduction) gather() {
	w := r.w
	for _, b := range r.made {
		w.then(w.issue(b.family(), "parameters", coll.AllGather, w.g.c.Type,
			share(b.elements, int64(max(w.size[b.family()], 1))), 0))
	}
}

// sharding gathers parameters before they are used and reduces gradients after each
// microbatch (ZeRO 2 and 3).
type sharding struct {
	w     *writer
	units []unit
	next  int        // the first unit that is not gathered
	ready [][2]int32 // by unit: the calls that gather it
	on    bool       // whether this pass gathers
}

// begin starts a pass. ZeRO 3 gathers in each pass, ZeRO 2 in the first of an iteration,
// as parameters then stay; so does ZeRO 3 of a pipeline, as torchtitan has it (reshard_after_forward),
// whose gradients are reduced once, too.
func (s *sharding) begin(units []unit, ahead bool, micro int) {
	if s.w.g.c.FSDP < 2 {
		return
	}
	s.units, s.next, s.ready = nil, 0, nil
	s.on = s.w.g.c.FSDP == 3 && s.w.g.c.PP == 1 || ahead && micro == 0
	for i := range units {
		if ahead {
			s.units = append(s.units, units[i])
		} else {
			s.units = append(s.units, units[len(units)-1-i])
		}
	}
}

// before gathers the unit that comes now and those that are prefetched.
func (s *sharding) before(i int) {
	if !s.on {
		return
	}
	for ; s.next < len(s.units) && s.next <= i+s.w.g.c.Prefetch; s.next++ {
		u, pair := s.units[s.next], [2]int32{}
		for k, n := range []int64{u.dense, u.experts} {
			f := part{experts: k == 1}.family()
			pair[k] = s.w.issue(f, "parameters", coll.AllGather, s.w.g.c.Type,
				share(n, int64(max(s.w.size[f], 1))), 0)
		}
		s.ready = append(s.ready, pair)
	}
	for _, step := range s.ready[i] {
		s.w.then(step)
	}
}

// reduce sums the gradients of a unit up, each rank those of its part.
func (s *sharding) reduce(u unit) {
	w := s.w
	for k, n := range []int64{u.dense, u.experts} {
		w.grads.scatter(part{experts: k == 1}.family(), n)
	}
}
