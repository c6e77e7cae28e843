// Package export writes plans for other programs and for people: as text with
// every op, as SimCCL's CSV of messages, as GOAL for LogGOPSim, or message by
// message to a function. List gives all ops in memory.
//
// In: a plan.Plan. Out: text, or Flows in the order of ranks, programs and ops.
// It knows no time. The CSV's counterpart is SimCCL's list of flows; NCCL has
// none.
package export

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// FlowsHeader is the first line of SimCCL's list of flows.
const FlowsHeader = "collective,op,data_size,algorithm,protocol,channel_id,flow_id,src,dest,flow_size," +
	"chunk_id,chunk_count,conn_type,parent_flow_ids,prev_flow_ids"

// WriteFlows writes the plan's messages as SimCCL's CSV: algorithm, protocol and op are NCCL's numbers (for
// send/recv, the protocol of the flow's program), lists of ids are separated by semicolons. chunk_count is
// the number of chunks of the channel's part as the ops count them.
func WriteFlows(w io.Writer, p *plan.Plan) error {
	if err := onlyMessages(p); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintln(b, FlowsHeader)
	chunks, protos, err := flowFacts(p)
	if err != nil {
		return err
	}
	l := p.Layout(p.Req.Root)
	size := max(l.Input, l.Output)
	line := make([]byte, 0, 256)
	err = EachFlow(p, func(f *Flow) error {
		line = fmt.Appendf(line[:0], "%v,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%s,", p.Req.Func, p.Req.Op, size,
			p.Req.Algo, protos[f.Conn.ID],
			f.Conn.Channel, f.ID, f.Conn.Src, f.Conn.Dst, f.Bytes, f.Chunk, chunks[f.Conn.Channel],
			connType(p, &f.Conn))
		for i, d := range f.Deps {
			if i > 0 {
				line = append(line, ';')
			}
			line = strconv.AppendInt(line, d, 10)
		}
		line = append(line, ',')
		if f.Prev >= 0 {
			line = strconv.AppendInt(line, f.Prev, 10)
		}
		_, err := b.Write(append(line, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return b.Flush()
}

// flowFacts returns the number of chunks of every channel and the protocol of
// every connection.
func flowFacts(p *plan.Plan) (map[int32]int32, []uint8, error) {
	chunks := map[int32]int32{}
	protos := make([]uint8, p.NumConns())
	var op plan.Op
	var cur plan.Cursor
	var progs []plan.Program
	for rank := range int32(p.Comm.NRanks) {
		progs = p.AppendPrograms(progs[:0], rank)
		for i := range progs {
			p.OpenInto(&cur, &progs[i])
			for cur.Next(&op) {
				chunks[op.Channel] = max(chunks[op.Channel], op.Chunk+1)
				for _, id := range op.To {
					if id < 0 || int(id) >= len(protos) {
						return nil, nil, fmt.Errorf("rank %d: connection %d does not exist", rank, id)
					}
					protos[id] = uint8(progs[i].Proto)
				}
			}
		}
	}
	return chunks, protos, nil
}

// connType returns SimCCL's word for the transport of a connection, as far as a plan knows it.
func connType(p *plan.Plan, c *plan.Conn) string {
	switch {
	case c.Kind == connect.NVLSRoute:
		return "NVLS"
	case c.Route.Transport == connect.NET:
		return "NET"
	case c.Route.Transport == connect.SHM:
		return "SHM"
	case p.Comm.IsAllNVLink:
		return "NVLINK"
	}
	return "P2P"
}

// WriteGOAL writes the plan as GOAL text (Group Operation Assembly Language, as LogGOPSim's txt2bin reads
// it): per rank its sends and receives, their dependencies, and a thread (cpu) per program. Tags are
// connection ids, so messages of a connection match in order. A plan knows no computing time: reductions and
// copies have no calc.
func WriteGOAL(w io.Writer, p *plan.Plan) error {
	x, err := newFlowIndex(p)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(b, "num_ranks %d\n", p.Comm.NRanks)
	g := goalWriter{b: b, x: x, walk: newWalk()}
	for rank := range int32(p.Comm.NRanks) {
		fmt.Fprintf(b, "\nrank %d {\n", rank)
		g.label = 0
		if err := g.rank(p.Programs(rank)); err != nil {
			return err
		}
		fmt.Fprintln(b, "}")
	}
	return b.Flush()
}

// goalWriter writes programs; label is the last label used in the rank.
type goalWriter struct {
	b     *bufio.Writer
	x     *flowIndex
	walk  *walk
	label int
}

// rank writes a rank's programs. The programs of a later phase require the last ops of the phase before on
// their channel.
func (g *goalWriter) rank(progs []plan.Program) error {
	var before, ends []int
	for cpu := range progs {
		switch {
		case cpu == 0 || progs[cpu].Channel != progs[cpu-1].Channel:
			before, ends = nil, nil
		case progs[cpu].Phase != progs[cpu-1].Phase:
			before, ends = ends, nil
		}
		end, err := g.program(&progs[cpu], cpu, before)
		if err != nil {
			return err
		}
		ends = append(ends, end...)
	}
	return nil
}

// program writes one program after the given labels, and returns the labels of its last op.
func (g *goalWriter) program(pr *plan.Program, cpu int, before []int) ([]int, error) {
	p := g.x.p
	labels := map[message]int{} // by message received: the label of its receive
	last, lastOp := 0, int32(-1)
	var now []int // labels of this op
	before = append([]int(nil), before...)
	step := func() {
		if g.walk.op.Seq != lastOp {
			lastOp = g.walk.op.Seq
			if len(now) > 0 {
				before, now = now, before[:0]
			}
		}
	}
	add := func(verb string, bytes units.Bytes, word string, peer, tag int32) {
		g.label++
		last = g.label
		fmt.Fprintf(g.b, "l%d: %s %db %s %d tag %d cpu %d\n", last, verb, bytes, word, peer, tag, cpu)
		for _, l := range before {
			fmt.Fprintf(g.b, "l%d requires l%d\n", last, l)
		}
		now = append(now, last)
	}
	g.walk.open(p, pr)
	err := g.walk.run(func(m message) error {
		step()
		if _, err := g.x.id(m); err != nil {
			return err
		}
		add("recv", g.x.bytes[m.conn][m.n], "from", p.Conn(m.conn).Src, m.conn)
		labels[m] = last
		return nil
	}, func(m message, n units.Bytes, deps []message) error {
		step()
		add("send", n, "to", p.Conn(m.conn).Dst, m.conn)
		send := last
		for i, d := range deps {
			if i == 0 || deps[i-1] != d {
				fmt.Fprintf(g.b, "l%d requires l%d\n", send, labels[d])
			}
		}
		return nil
	})
	if len(now) == 0 {
		now = before
	}
	return now, err
}
