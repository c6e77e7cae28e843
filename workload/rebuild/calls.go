package rebuild

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/internal/torch"
	"github.com/simccl/simccl/workload/kineto"
)

// commCall is a process-group call that a kernel executed.
type commCall struct {
	call   workload.Call // Comm is set later
	group  *kineto.Group // nil for the default group
	comm   int32         // index into job.comms
	member int32         // rank in the group
}

// assign determines the call of each NCCL kernel: the arguments recorded on the kernel, completed by the
// process-group call around its launch. A launch after several calls (a coalesced group) executes all calls
// since the previous launch.
func (r *rank) assign(sized []Sized) {
	byThread := map[int32][]*kineto.Comm{}
	for i := range r.t.Comms {
		c := &r.t.Comms[i]
		if c.Thread >= 0 && !passive(c.Name) {
			byThread[c.Thread] = append(byThread[c.Thread], c)
		}
	}
	next := map[int32]int{}
	lost, taken, foreign := 0, 0, 0
	side := newSide(sized)
	for i := range r.ops {
		g := &r.ops[i]
		if g.op.Class == kineto.Foreign {
			foreign++
		}
		if g.op.Class != kineto.NCCL {
			continue
		}
		list, at := byThread[g.call.Thread], next[g.call.Thread]
		var found []*kineto.Comm
		for at < len(list) && list[at].Start <= g.call.Start {
			found = append(found, list[at])
			at++
		}
		next[g.call.Thread] = at
		if n := len(found); n > 0 && g.call.Start < found[n-1].Start+found[n-1].Dur {
			found = found[n-1:] // launched inside of the call: a single one
		}
		if g.op.Comm > 0 {
			found = []*kineto.Comm{merged(&r.t.Comms[g.op.Comm-1], found)}
		}
		for _, c := range found {
			if call, ok := r.shape(c); ok {
				g.comms = append(g.comms, call)
			}
		}
		if len(g.comms) == 0 {
			if call, ok := side.next(r, r.t.Names[g.op.Name]); ok {
				g.comms = append(g.comms, call)
				taken++
			} else {
				lost++
			}
		}
	}
	if lost > 0 {
		r.note("%d kernels of NCCL have no sizes; they are communication of their recorded time, and wait "+
			"for no other rank; give the Flight Recorder's dump or the log with COLL lines beside the "+
			"recording", lost)
	}
	if taken > 0 {
		r.note("the sizes of %d kernels of NCCL are from another recording", taken)
	}
	if foreign > 0 {
		r.note("%d kernels of other communication libraries are communication of their recorded times",
			foreign)
	}
}

// passive reports whether a call of a process group moves nothing.
func passive(name string) bool {
	return name == "" || name == "wait" || name == "init" || strings.HasPrefix(name, "wait_") ||
		strings.HasPrefix(name, "start_") || strings.HasPrefix(name, "end_")
}

// merged completes a kernel's own arguments, which lack roots and peers.
func merged(own *kineto.Comm, around []*kineto.Comm) *kineto.Comm {
	for _, c := range around {
		if c.External == own.External || len(around) == 1 && c.Name == own.Name {
			m := *own
			m.Root = c.Root
			if len(m.InSplit) == 0 {
				m.InSplit, m.OutSplit = c.InSplit, c.OutSplit
			}
			return &m
		}
	}
	return own
}

// shape converts a process-group call of a recording; false if its function or type is unknown.
func (r *rank) shape(c *kineto.Comm) (commCall, bool) {
	cc := commCall{member: int32(r.rank)}
	size := int64(max(r.t.World, 1))
	if c.Group >= 0 {
		cc.group = &r.t.Groups[c.Group]
		if cc.group.Size > 0 {
			size = int64(cc.group.Size)
		}
		if cc.group.Ranks != nil && !cc.group.Cut {
			cc.member = int32(slices.Index(cc.group.Ranks, int32(r.rank)))
			size = int64(len(cc.group.Ranks))
		}
	} else if c.Size > 0 {
		size = int64(c.Size)
	}
	call, ok := torch.Translate(c.Name, c.Type, c.In, c.Out, size, c.Root, c.InSplit)
	if !ok {
		r.note("%s of %s is not known and keeps its recorded time", c.Name, c.Type)
	}
	cc.call = call
	return cc, ok
}

// side supplies the calls of another recording for kernels without arguments, in order among those of the
// same function.
type side struct {
	byFunc map[coll.Func][]Sized
	at     map[coll.Func]int
}

func newSide(all []Sized) *side {
	s := &side{map[coll.Func][]Sized{}, map[coll.Func]int{}}
	for _, x := range all {
		if c, ok := torch.Translate(x.Name, x.Type, x.In, x.Out, 1, 0, nil); ok {
			s.byFunc[c.Func] = append(s.byFunc[c.Func], x)
		}
	}
	return s
}

// next returns the recorded call of the next kernel with a name: the calls of its function in turn.
func (s *side) next(r *rank, kernel string) (commCall, bool) {
	for _, f := range coll.CollFuncs() {
		list := s.byFunc[f]
		if len(list) == 0 || !strings.Contains(kernel, "_"+f.String()+"_") {
			continue
		}
		x := list[s.at[f]%len(list)]
		s.at[f]++
		c := kineto.Comm{Name: x.Name, Type: x.Type, In: x.In, Out: x.Out, Group: -1}
		for i := range r.t.Groups {
			if r.t.Groups[i].Name == x.Group {
				c.Group = int32(i)
			}
		}
		return r.shape(&c)
	}
	return commCall{}, false
}

// group is a communicator of the job, with the statistics from which its purpose is inferred.
type group struct {
	comm  workload.Comm
	key   string
	funcs map[coll.Func]bool
	// How many all_gathers ranks issue, and how many of them a reduce_scatter follows.
	gathers, scattered int
	// How many calls ranks issue, and of how many the computation goes on with the result.
	issued, awaited int
}

// saw counts a call on a group; gathered reports whether the last all_gather or reduce_scatter was an
// all_gather.
func (g *group) saw(f coll.Func, gathered bool) {
	g.funcs[f] = true
	switch {
	case f == coll.AllGather:
		g.gathers++
	case f == coll.ReduceScatter && gathered:
		g.scattered++
	}
}

// groups assigns each call to its communicator.
func (j *job) groups() {
	index := map[string]int32{}
	full := map[string][]int32{} // by name, from the recording that has all members
	for _, r := range j.ranks {
		for i := range r.t.Groups {
			if g := &r.t.Groups[i]; !g.Cut && g.Ranks != nil && slices.Contains(g.Ranks, int32(r.rank)) {
				full[g.Name] = g.Ranks
			}
		}
	}
	for _, r := range j.ranks {
		gathered := map[int32]bool{}
		for i := range r.ops {
			for k := range r.ops[i].comms {
				c := &r.ops[i].comms[k]
				c.comm = j.comm(index, full, c.group, r)
				f := c.call.Func
				j.comms[c.comm].saw(f, gathered[c.comm])
				if f == coll.AllGather || f == coll.ReduceScatter {
					gathered[c.comm] = f == coll.AllGather
				}
			}
		}
	}
}

// kinds sets the purpose (DP, TP, …) of each communicator.
func (j *job) kinds() {
	steps := 0
	for _, r := range j.ranks {
		r.awaits(j.comms)
		steps += max(len(r.t.Steps), 1)
	}
	for _, g := range j.comms {
		g.comm.Kind = g.kind(fewCalls * steps)
	}
}

// apart is the number of kernels between calls that are parts of a computation, as in tensor parallelism.
// Reductions of gradients, one parameter after the other, have one or two in between.
const apart = 3

// awaits counts the calls whose result the rank's next compute kernel waits for, if at least `apart` kernels
// have run since the group's previous call.
func (r *rank) awaits(comms []*group) {
	since := map[int32]int{}
	for i := range r.ops {
		g := &r.ops[i]
		if len(g.comms) == 0 {
			for c := range since { //lint:sorted each by itself
				since[c]++
			}
			continue
		}
		c := g.comms[0].comm
		comms[c].issued++
		if before, known := since[c]; (!known || before >= apart) && r.next(i) {
			comms[c].awaited++
		}
		since[c] = 0
	}
}

// next reports whether the next kernel that is none of NCCL waits for an operation.
func (r *rank) next(i int) bool {
	for k := i + 1; k < len(r.ops); k++ {
		if g := &r.ops[k]; len(g.comms) == 0 && g.op.Class == kineto.Kernel {
			return g.op.Stream == r.ops[i].op.Stream || slices.Contains(g.deps, int32(i))
		}
	}
	return false
}

// comm returns the index of the communicator of a process group.
func (j *job) comm(index map[string]int32, full map[string][]int32, g *kineto.Group, r *rank) int32 {
	name, desc := "0", "default_pg"
	var ranks []int32
	if g != nil {
		name, desc, ranks = g.Name, g.Desc, g.Ranks
		if g.Cut {
			ranks = full[name]
		}
	}
	all := len(ranks) == j.world
	for i := range ranks {
		all = all && ranks[i] == int32(i)
	}
	if all || ranks == nil {
		ranks = nil
	}
	key := name + fmt.Sprint(ranks)
	i, known := index[key]
	if !known {
		i = int32(len(j.comms))
		index[key] = i
		c := workload.Comm{Name: "pg" + name, Desc: desc, Ranks: ranks}
		for _, o := range j.comms {
			if o.comm.Name == c.Name {
				c.Name = fmt.Sprintf("pg%s.%d", name, r.rank)
			}
		}
		j.comms = append(j.comms, &group{comm: c, key: key, funcs: map[coll.Func]bool{}})
	}
	return i
}

// alternating is the share of all_gathers followed by a reduce_scatter above which a group is TP with
// sequence parallelism, which gathers and scatters activations in turn (all gathers, or two of three if
// inputs are gathered again for weight gradients). An FSDP forward pass gathers parameters layer by layer and
// scatters nothing: at most a half.
const alternating = 0.6

// kind returns a communicator's purpose, by its description or else by the calls that occur on it more than a
// few times.
func (g *group) kind(few int) workload.CommKind {
	shards := g.funcs[coll.AllGather] && g.funcs[coll.ReduceScatter]
	if k := described(g.comm.Desc); k == workload.DP && shards {
		return workload.FSDP
	} else if k != workload.NoKind {
		return k
	}
	only := func(list ...coll.Func) bool {
		n := 0
		for _, f := range list {
			if g.funcs[f] {
				n++
			}
		}
		return n > 0 && n == len(g.funcs)
	}
	switch {
	case only(coll.Send, coll.Recv):
		return workload.PP
	case only(coll.AllToAll):
		return workload.EP
	case shards && g.gathers > few && float64(g.scattered) > alternating*float64(g.gathers):
		return workload.TP
	case shards:
		return workload.FSDP
	case only(coll.AllReduce) && g.issued > few && g.awaited > g.issued/3:
		return workload.TP
	case g.funcs[coll.AllReduce] && only(coll.AllReduce, coll.Broadcast) && g.issued > few &&
		g.awaited <= g.issued/10:
		return workload.DP // reductions beside computation, and initial broadcasts
	}
	return workload.NoKind
}

// fewCalls is the number of calls per step up to which they may be reductions of gradients or losses once a
// step, or gathers of a whole FSDP model. If there are more, tensor parallel layers wait for all of them, or
// for half: those of the forward pass.
const fewCalls = 4

// described returns the purpose that a group's description names.
func described(desc string) workload.CommKind {
	d := strings.ToLower(desc)
	for _, x := range []struct {
		words string
		kind  workload.CommKind
	}{{"fsdp shard", workload.FSDP}, {"expert ep", workload.EP}, {"tensor tp", workload.TP},
		{"pipe pp", workload.PP}, {"context cp", workload.CP}, {"data dp replicate", workload.DP}} {
		for word := range strings.FieldsSeq(x.words) {
			if strings.Contains(d, word) && d != "default_pg" {
				return x.kind
			}
		}
	}
	return workload.NoKind
}
