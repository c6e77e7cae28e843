package simai

import (
	"cmp"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
)

// From converts a program to rows: the computations and calls of rank 0 in sequence. lost names what the
// format cannot express.
func From(p *workload.Program) (f *File, lost []string, err error) {
	if len(p.Of) == 0 {
		return nil, nil, fmt.Errorf("the program has no ranks")
	}
	f = &File{Policy: "HYBRID_TRANSFORMER_FWD_IN_BCKWD", Tensor: 1, Expert: 1, Pipeline: 1, Virtual: 1,
		Micro: 1, GPUs: len(p.Of)}
	for i := range p.Comms {
		n := p.Comms[i].Size(len(p.Of))
		switch p.Comms[i].Kind {
		case workload.TP, workload.NoKind, workload.CP:
			f.Tensor = max(f.Tensor, n)
		case workload.EP:
			f.Expert = max(f.Expert, n)
		}
	}
	e := exporter{p: p, f: f, lost: map[string]int{}}
	list := &p.Lists[p.Of[0]]
	for i := range list.Steps {
		e.step(&list.Steps[i])
	}
	e.flush("end")
	if len(p.Lists) > 1 {
		e.lose("differences between ranks: the rows are rank 0's")
	}
	for range p.Marks {
		e.lose("marks of iterations")
	}
	for _, what := range e.order {
		lost = append(lost, fmt.Sprintf("%s (%d)", what, e.lost[what]))
	}
	return f, lost, nil
}

type exporter struct {
	p       *workload.Program
	f       *File
	compute int64 // ns since the last row
	name    string
	lost    map[string]int
	order   []string
}

func (e *exporter) lose(what string) {
	if e.lost[what] == 0 {
		e.order = append(e.order, what)
	}
	e.lost[what]++
}

// flush writes a row for compute time that no call follows.
func (e *exporter) flush(name string) {
	if e.compute > 0 {
		e.row(name, Pass{0, "NONE", 0}, Tensor)
	}
}

// row writes a row whose compute precedes a collective of the forward pass, or of the
// weight gradient for data parallel groups.
func (e *exporter) row(name string, p Pass, family groupKind) {
	none := Pass{0, "NONE", 0}
	r := Row{Name: name, Forward: none, Input: none, Weight: none}
	r.Forward.Compute = e.compute
	if family == Data {
		r.Weight.Coll, r.Weight.Bytes = p.Coll, p.Bytes
	} else {
		r.Forward.Coll, r.Forward.Bytes = p.Coll, p.Bytes
	}
	e.compute = 0
	e.f.Rows = append(e.f.Rows, r)
}

func (e *exporter) step(s *workload.Step) {
	switch s.Kind {
	case workload.Compute:
		if workload.OnHost(s.Stream) {
			e.lose("time of the host")
			return
		}
		if s.Stream != 0 {
			e.lose("streams: all is one after the other")
		}
		e.compute += (int64(s.Time) + 500) / 1000
		if s.Work > 0 {
			e.name = e.p.Works[s.Work-1].Name
		}
	case workload.Record, workload.Wait:
		e.lose("events")
	case workload.GroupStart, workload.GroupEnd:
		e.lose("groups of calls")
	case workload.Issue:
		e.call(&e.p.Calls[s.Call])
	}
}

func (e *exporter) call(c *workload.Call) {
	words := map[coll.Func]string{coll.AllReduce: "ALLREDUCE", coll.AllGather: "ALLGATHER",
		coll.ReduceScatter: "REDUCESCATTER", coll.AllToAll: "ALLTOALL", coll.Broadcast: "BROADCAST"}
	word, ok := words[c.Func]
	if !ok {
		e.lose(c.Func.String())
		return
	}
	comm := &e.p.Comms[c.Comm]
	family := Tensor
	switch comm.Kind {
	case workload.EP:
		word, family = word+"_EP", Expert
	case workload.DP, workload.FSDP:
		family = Data
	case workload.PP:
		e.lose("calls of pipeline groups")
		return
	}
	if c.Splits != nil {
		e.lose("splits of alltoall")
	}
	name := cmp.Or(e.name, "layer")
	e.row(clean(name), Pass{0, word, bytesOf(c, comm.Size(len(e.p.Of)))}, family)
}

// clean replaces blanks and non-ASCII characters of a name by "_".
func clean(name string) string {
	out := []byte(name)
	for i, c := range out {
		if c <= ' ' || c >= 0x7f {
			out[i] = '_'
		}
	}
	return string(out)
}
