package calls

import (
	"fmt"
	"maps"
	"slices"

	"github.com/simccl/simccl/workload"
)

// maker converts the events of one rank to a list of steps.
type maker struct {
	p     *workload.Program
	steps []workload.Step
	last  map[int]int32 // by stream: the step that a host waiting for the stream waits for
	after []int32       // steps that the host's next step waits for
	host  map[int]int32 // last step of a thread
	marks map[int]bool
	all   []int32    // steps of events
	timed [][2]int32 // those that the program has asked for the time from, and to
}

// Program converts the record to a job: calls by rank, stream and group, and the host's time between them. A
// host that has waited for a stream continues when the stream's last group of calls has ended, or its last
// wait for an event if that is later.
func (r *Record) Program() *workload.Program {
	p, _ := r.Timed()
	return p
}

// Timed returns the Program and, for each rank, the pairs of event steps whose time difference the program
// queried, in the order of the second event.
func (r *Record) Timed() (*workload.Program, [][][2]int32) {
	timed := make([][][2]int32, r.Ranks)
	p := &workload.Program{Of: make([]int32, r.Ranks)}
	for i := range r.Comms {
		c := &r.Comms[i]
		p.Comms = append(p.Comms, workload.Comm{Name: fmt.Sprintf("comm%d", i), Ranks: c.Ranks,
			Parent: int32(c.Parent), Share: c.Share})
	}
	known := map[string]int32{}
	index := map[callKey]int32{}
	for rank, list := range r.Events {
		m := maker{p: p, last: map[int]int32{}, host: map[int]int32{}, marks: map[int]bool{}}
		m.run(list, index)
		key := fmt.Sprint(m.steps)
		at, ok := known[key]
		if !ok {
			at = int32(len(p.Lists))
			known[key] = at
			p.Lists = append(p.Lists, workload.List{Name: fmt.Sprintf("rank%d", rank), Steps: m.steps})
		}
		p.Of[rank], timed[rank] = at, m.timed
	}
	return p, timed
}

// callKey identifies equal Calls, which are stored once; Splits are not compared.
type callKey struct {
	comm, root, peer            int32
	fn, typ, op                 uint8
	count                       int64
	inPlace, window, registered bool
}

func (m *maker) call(e *Event, index map[callKey]int32) int32 {
	c := workload.Call{Comm: int32(e.Comm), Func: e.Func, Type: e.Type, RedOp: e.Op, Count: e.Count,
		InPlace: e.InPlace, Registered: e.Registered, Window: e.Window}
	if message(e.Func) {
		c.Peer = e.Root
	} else if e.Func.Rooted() {
		c.Root = e.Root
	}
	k := callKey{c.Comm, c.Root, c.Peer, uint8(c.Func), uint8(c.Type), uint8(c.RedOp), c.Count, c.InPlace,
		c.Window, c.Registered}
	i, ok := index[k]
	if !ok {
		i = int32(len(m.p.Calls))
		index[k] = i
		m.p.Calls = append(m.p.Calls, c)
	}
	return i
}

func (m *maker) add(s workload.Step) int32 {
	m.steps = append(m.steps, s)
	return int32(len(m.steps) - 1)
}

// think adds the host computation before an event and returns the steps that the event depends on.
func (m *maker) think(e *Event) []int32 {
	if e.Host > 0 || len(m.after) > 0 {
		m.host[e.Thread] = m.add(workload.Step{Kind: workload.Compute, Stream: workload.HostStream +
			int32(e.Thread), Time: e.Host, Deps: m.after})
		m.after = nil
	}
	if at, ok := m.host[e.Thread]; ok {
		return []int32{at}
	}
	return nil
}

func (m *maker) run(list []Event, index map[callKey]int32) {
	for i := 0; i < len(list); i++ {
		e := &list[i]
		switch e.Kind {
		case Sync:
			m.think(e)
			for _, s := range slices.Sorted(maps.Keys(m.last)) {
				if e.All || s == e.Stream {
					m.after = append(m.after, m.last[s])
				}
			}
		case Work:
			m.last[e.Stream] = m.add(workload.Step{Kind: workload.Compute, Stream: int32(e.Stream),
				Time: e.Time, Deps: m.think(e)})
		case Mark:
			at := m.add(workload.Step{Kind: workload.Record, Stream: int32(e.Stream), Event: int32(e.Event),
				Deps: m.think(e)})
			if n := len(m.all); e.Since > 0 && e.Since <= n {
				m.timed = append(m.timed, [2]int32{m.all[n-e.Since], at})
			}
			m.all = append(m.all, at)
			m.marks[e.Event] = true
		case Wait:
			if m.marks[e.Event] {
				m.last[e.Stream] = m.add(workload.Step{Kind: workload.Wait, Stream: int32(e.Stream),
					Event: int32(e.Event), Deps: m.think(e)})
			}
		default:
			i = m.group(list, i, index)
		}
	}
}

// group adds the calls of a group and returns the last one's index.
func (m *maker) group(list []Event, i int, index map[callKey]int32) int {
	end := i
	for end+1 < len(list) && list[end+1].Kind == Call && list[end+1].Group == list[i].Group {
		end++
	}
	deps := m.think(&list[i])
	if end > i {
		m.add(workload.Step{Kind: workload.GroupStart})
	}
	of := map[int]int32{} // by communicator: its last step
	for k := i; k <= end; k++ {
		e := &list[k]
		of[e.Comm] = m.add(workload.Step{Kind: workload.Issue, Stream: int32(e.Stream),
			Call: m.call(e, index), Deps: deps})
	}
	if end > i {
		at := m.add(workload.Step{Kind: workload.GroupEnd})
		if len(of) == 1 { // sends and receives are launched last wherever they are
			of[list[i].Comm] = at
		}
	}
	for _, comm := range slices.Sorted(maps.Keys(of)) {
		for k := i; k <= end; k++ {
			if list[k].Comm == comm { // its streams go on behind its last kernel
				m.last[list[k].Stream] = of[comm]
			}
		}
	}
	return end
}
