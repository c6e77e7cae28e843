package chakra

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
)

// schemaVersion is the Chakra schema version that written traces declare.
const schemaVersion = "0.0.4"

// From converts a program to one trace per rank, and returns the members of its groups by name. Order on
// streams becomes dependencies. lost names what other readers of the traces do not see; attributes simccl_…
// keep most of it for Program.
func From(p *workload.Program) (traces []*Trace, groups map[string][]int32, lost []string, err error) {
	e := exporter{p: p, lost: map[string]int{}}
	groups = map[string][]int32{}
	for i := range p.Comms {
		ranks := p.Comms[i].Ranks
		if ranks == nil {
			for r := range p.Of {
				ranks = append(ranks, int32(r))
			}
		}
		groups[groupName(int32(i))] = ranks
	}
	for r := range p.Of {
		traces = append(traces, e.rank(r))
	}
	for range p.Marks {
		e.lose("marks of iterations")
	}
	if p.Factor != nil {
		e.lose("factors of slow ranks: times are longer instead")
	}
	for _, what := range e.order {
		lost = append(lost, fmt.Sprintf("%s (%d)", what, e.lost[what]))
	}
	return traces, groups, lost, nil
}

type exporter struct {
	p     *workload.Program
	lost  map[string]int
	order []string
}

func (e *exporter) lose(what string) {
	if e.lost[what] == 0 {
		e.order = append(e.order, what)
	}
	e.lost[what]++
}

// rank returns the trace of a rank, one node per step.
func (e *exporter) rank(r int) *Trace {
	list := &e.p.Lists[e.p.Of[r]]
	t := &Trace{File: list.Name, Version: schemaVersion}
	last := map[int32]int{} // by stream: the last step
	records := map[int32]int{}
	for i := range list.Steps {
		s := &list.Steps[i]
		n := Node{ID: uint64(i), Type: Comp, CPU: workload.OnHost(s.Stream), Name: s.Kind.String()}
		n.Own = own{Has: true, Stream: int64(s.Stream), Time: int64(s.Time)}
		switch s.Kind {
		case workload.GroupStart, workload.GroupEnd:
			e.lose("groups of calls: their calls are issued one by one")
			continue
		case workload.Compute:
			e.compute(&n, s, e.p.FactorOf(r))
		case workload.Wait:
			if d, ok := records[s.Event]; ok {
				n.Data = append(n.Data, uint64(d))
			}
		case workload.Record:
			records[s.Event] = i
		case workload.Issue:
			e.call(&n, &e.p.Calls[s.Call], int32(r))
		}
		if d, ok := last[s.Stream]; ok {
			n.Data = append(n.Data, uint64(d))
		}
		for _, d := range s.Deps {
			if k := list.Steps[d].Kind; k != workload.GroupStart && k != workload.GroupEnd {
				n.Data = append(n.Data, uint64(d))
			}
		}
		slices.Sort(n.Data)
		n.Data = slices.Compact(n.Data)
		last[s.Stream] = i
		t.Nodes = append(t.Nodes, n)
	}
	return t
}

func (e *exporter) compute(n *Node, s *workload.Step, factor float64) {
	if n.CPU {
		factor = 1
	}
	n.Own.Time = int64(float64(s.Time) * factor)
	if factor == 1 {
		n.Own.Time = int64(s.Time)
	}
	n.Dur = uint64((n.Own.Time + 500_000) / 1_000_000)
	if s.Time%1_000_000 != 0 {
		e.lose("parts of a microsecond")
	}
	if s.Work > 0 {
		w := &e.p.Works[s.Work-1]
		n.Name, n.FLOPs, n.TensorSize = w.Name, w.FLOPs, w.Bytes
		n.Own.Work = w.Name
		if w.Blocks > 0 {
			e.lose("grids of kernels")
		}
	}
}

// groupName returns the name of a communicator: ASTRA-sim numbers groups from 1.
func groupName(comm int32) string { return strconv.Itoa(int(comm) + 1) }

// call fills a communication node from a call of rank me.
func (e *exporter) call(n *Node, c *workload.Call, me int32) {
	comm := &e.p.Comms[c.Comm]
	size := int64(comm.Size(len(e.p.Of)))
	n.Name, n.Type, n.Group = c.Func.TestName(), Coll, groupName(c.Comm)
	n.Bytes, n.HasColl = int64(c.Bytes()), true
	n.Dur = uint64((c.Recorded + 500_000) / 1_000_000)
	n.Own.Time = int64(c.Recorded)
	n.Own.Call, n.Own.Comm, n.Own.Kind = formatCall(c), comm.Name, comm.Kind.String()
	switch c.Func {
	case coll.AllReduce:
		n.Coll = AllReduce
	case coll.Reduce:
		n.Coll = Reduce
	case coll.AllGather:
		n.Coll = AllGather
	case coll.Gather:
		n.Coll = Gather
	case coll.Broadcast:
		n.Coll = Broadcast
	case coll.Scatter, coll.AllToAll, coll.ReduceScatter:
		n.Coll = map[coll.Func]CollType{coll.Scatter: Scatter, coll.AllToAll: AllToAll,
			coll.ReduceScatter: ReduceScatter}[c.Func]
		if c.Splits == nil {
			n.Bytes *= size
		} else {
			e.lose("splits of alltoall: other readers see equal parts")
		}
	case coll.Send, coll.Recv:
		n.HasColl, n.Type, n.Src, n.Dst = false, Send, me, comm.Rank(c.Peer)
		if c.Func == coll.Recv {
			n.Type, n.Src, n.Dst = Recv, comm.Rank(c.Peer), me
		}
		n.Tag = c.Comm
	default:
		n.HasColl = false
		e.lose(c.Func.String() + ": other readers see no collective")
	}
}

// formatCall formats a call: function, type, reduction, count, then root=, peer=, splits=, inplace, window,
// registered as they apply.
func formatCall(c *workload.Call) string {
	t := fmt.Sprintf("%s %s %s %d", c.Func.TestName(), c.Type.TestName(), c.RedOp.TestName(), c.Count)
	if c.Root != 0 {
		t += fmt.Sprintf(" root=%d", c.Root)
	}
	if c.Peer != 0 {
		t += fmt.Sprintf(" peer=%d", c.Peer)
	}
	for i, n := range c.Splits {
		sep := ","
		if i == 0 {
			sep = " splits="
		}
		t += sep + strconv.FormatInt(n, 10)
	}
	for _, f := range []struct {
		word string
		on   bool
	}{{"inplace", c.InPlace}, {"window", c.Window}, {"registered", c.Registered}} {
		if f.on {
			t += " " + f.word
		}
	}
	return t
}

func parseCall(text string, comm int32) (c workload.Call, err error) {
	c.Comm = comm
	w := strings.Fields(text)
	if len(w) < 4 {
		return c, fmt.Errorf("%q is no call", text)
	}
	switch w[0] {
	case coll.Send.TestName():
		c.Func = coll.Send
	case coll.Recv.TestName():
		c.Func = coll.Recv
	default:
		if c.Func, err = coll.ParseFunc(w[0]); err != nil {
			return c, err
		}
	}
	if c.Type, err = coll.ParseDataType(w[1]); err != nil {
		return c, err
	}
	if c.RedOp, err = coll.ParseRedOp(w[2]); err != nil {
		return c, err
	}
	if c.Count, err = strconv.ParseInt(w[3], 10, 64); err != nil {
		return c, err
	}
	for _, x := range w[4:] {
		name, value, _ := strings.Cut(x, "=")
		switch name {
		case "inplace":
			c.InPlace = true
		case "window":
			c.Window = true
		case "registered":
			c.Registered = true
		case "root", "peer":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return c, err
			}
			if name == "root" {
				c.Root = int32(n)
			} else {
				c.Peer = int32(n)
			}
		case "splits":
			for part := range strings.SplitSeq(value, ",") {
				n, err := strconv.ParseInt(part, 10, 64)
				if err != nil {
					return c, err
				}
				c.Splits = append(c.Splits, n)
			}
		default:
			return c, fmt.Errorf("%q is not known", x)
		}
	}
	return c, nil
}
