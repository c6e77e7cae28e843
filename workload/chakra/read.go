package chakra

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/simccl/simccl/internal/protowire"
	"github.com/simccl/simccl/workload/internal/torch"
)

// maxNodes is the largest accepted number of nodes of a trace.
const maxNodes = 1 << 26

func (m *messages) fail(format string, args ...any) error {
	return &Error{File: m.file, Offset: m.at, Node: m.n, Problem: fmt.Sprintf(format, args...)}
}

// Read reads the protobuf form. The error is an *Error.
func Read(in io.Reader, file string) (*Trace, error) {
	m := &messages{in: bufio.NewReaderSize(in, 256<<10), file: file}
	t := &Trace{File: file, Groups: map[string][]int32{}}
	for {
		at := m.at
		msg, err := m.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if m.n == 1 {
			err = t.metadata(msg)
		} else {
			var n Node
			if n, err = readNode(msg, t.Groups); err == nil {
				t.Nodes = append(t.Nodes, n)
			}
		}
		if err != nil {
			return nil, &Error{File: file, Offset: at, Node: m.n - 1, Problem: err.Error(),
				Hint: "this is no Chakra trace, or a damaged one"}
		}
		if len(t.Nodes) > maxNodes {
			return nil, m.fail("more than %d nodes", maxNodes)
		}
	}
	if m.n == 0 {
		return nil, m.fail("the file is empty")
	}
	return t, nil
}

// metadata reads the first message: schema version and process groups.
func (t *Trace) metadata(msg []byte) error {
	return eachField(msg, func(num, wire int, v uint64, b []byte) error {
		switch num {
		case 1:
			t.Version = string(b)
		case 2:
			a, err := readAttribute(b)
			if err != nil {
				return err
			}
			if a.name == "schema" {
				t.Version = a.text
			}
		default:
			return protowire.ErrField
		}
		return nil
	})
}

func readNode(msg []byte, groups map[string][]int32) (n Node, err error) {
	err = eachField(msg, func(num, wire int, v uint64, b []byte) error {
		switch num {
		case 1:
			n.ID = v
		case 2:
			n.Name = string(b)
		case 3:
			n.Type = Type(min(v, 100))
		case 4:
			n.Ctrl = packed(n.Ctrl, wire, v, b)
		case 5:
			n.Data = packed(n.Data, wire, v, b)
		case 6:
			n.Start = v
		case 7:
			n.Dur = v
		case 8:
			return readGroups(b, n.Name, groups)
		case 9:
		case 10:
			a, err := readAttribute(b)
			if err != nil {
				return err
			}
			n.set(&a)
		}
		return nil
	})
	return n, err
}

// set stores an attribute's value in the field of its name.
func (n *Node) set(a *attribute) {
	switch a.name {
	case "is_cpu_op":
		n.CPU = a.num != 0
	case "num_ops":
		n.FLOPs = max(a.num, 0)
	case "tensor_size":
		n.TensorSize = max(a.num, 0)
	case "comm_type":
		n.Coll, n.HasColl = CollType(a.num), true
	case "comm_size":
		n.Bytes = a.num
	case "comm_src":
		n.Src = clamp(a.num)
	case "comm_dst":
		n.Dst = clamp(a.num)
	case "comm_tag":
		n.Tag = clamp(a.num)
	case "pg_name":
		n.Group = a.text
		if a.kind != 29 && a.kind != 31 {
			n.Group = fmt.Sprint(a.num)
		}
	case "simccl_call":
		n.Own.Call, n.Own.Has = a.text, true
	case "simccl_stream":
		n.Own.Stream, n.Own.Has = a.num, true
	case "simccl_ps":
		n.Own.Time, n.Own.Has = a.num, true
	case "simccl_work":
		n.Own.Work = a.text
	case "simccl_comm":
		n.Own.Comm = a.text
	case "simccl_kind":
		n.Own.Kind = a.text
	}
}

func clamp(n int64) int32 { return int32(min(max(n, -1<<31), 1<<31-1)) }

// readGroups reads the inputs of a node that lists process groups: JSON text in the
// first value.
func readGroups(msg []byte, name string, groups map[string][]int32) error {
	if name != initName {
		return nil
	}
	return eachField(msg, func(num, wire int, v uint64, b []byte) error {
		if num == 1 {
			torch.ParseGroups(b, groups)
		}
		return nil
	})
}

// initName is the name of the node that lists process groups.
const initName = "## process_group:init ##"

// Write writes the trace as protobuf messages with lengths.
func (t *Trace) Write(to io.Writer) error {
	b := bufio.NewWriter(to)
	meta := appendText(nil, 1, t.Version)
	writeMessage(b, meta)
	for i := range t.Nodes {
		writeMessage(b, t.Nodes[i].append(nil))
	}
	return b.Flush()
}

func writeMessage(b *bufio.Writer, msg []byte) {
	b.Write(binary.AppendUvarint(nil, uint64(len(msg))))
	b.Write(msg)
}

func appendText(to []byte, field int, s string) []byte {
	if s == "" {
		return to
	}
	to = binary.AppendUvarint(to, uint64(field)<<3|2)
	to = binary.AppendUvarint(to, uint64(len(s)))
	return append(to, s...)
}

func appendNumber(to []byte, field int, v uint64) []byte {
	if v == 0 {
		return to // proto3 does not write zero
	}
	to = binary.AppendUvarint(to, uint64(field)<<3)
	return binary.AppendUvarint(to, v)
}

// append appends the node's protobuf message to a buffer.
func (n *Node) append(to []byte) []byte {
	to = appendNumber(to, 1, n.ID)
	to = appendText(to, 2, n.Name)
	to = appendNumber(to, 3, uint64(n.Type))
	for field, list := range [][]uint64{n.Ctrl, n.Data} {
		if len(list) == 0 {
			continue
		}
		var p []byte
		for _, d := range list {
			p = binary.AppendUvarint(p, d)
		}
		to = appendText(to, 4+field, string(p))
	}
	to = appendNumber(to, 6, n.Start)
	to = appendNumber(to, 7, n.Dur)
	for _, a := range n.attributes() {
		to = appendText(to, 10, string(a))
	}
	return to
}

// attributes returns the node's attributes as messages. Members of a oneof are written
// also when they are 0.
func (n *Node) attributes() (list [][]byte) {
	num := func(name string, field int, v uint64) {
		a := appendText(nil, 1, name)
		a = binary.AppendUvarint(a, uint64(field)<<3)
		list = append(list, binary.AppendUvarint(a, v))
	}
	text := func(name, v string) {
		a := appendText(nil, 1, name)
		a = binary.AppendUvarint(a, 29<<3|2)
		a = binary.AppendUvarint(a, uint64(len(v)))
		list = append(list, append(a, v...))
	}
	cpu := uint64(0)
	if n.CPU {
		cpu = 1
	}
	num("is_cpu_op", 27, cpu)
	if n.FLOPs > 0 {
		num("num_ops", 9, uint64(n.FLOPs))
	}
	if n.TensorSize > 0 {
		num("tensor_size", 13, uint64(n.TensorSize))
	}
	if n.HasColl {
		num("comm_type", 9, uint64(n.Coll))
	}
	if n.Type == Send || n.Type == Recv || n.Type == Coll {
		num("comm_size", 9, uint64(n.Bytes))
	}
	if n.Type == Send || n.Type == Recv {
		num("comm_src", 7, uint64(n.Src))
		num("comm_dst", 7, uint64(n.Dst))
		num("comm_tag", 7, uint64(n.Tag))
	}
	if n.Group != "" {
		text("pg_name", n.Group)
	}
	if n.Own.Has {
		num("simccl_stream", 9, uint64(n.Own.Stream))
		num("simccl_ps", 9, uint64(n.Own.Time))
		if n.Own.Call != "" {
			text("simccl_call", n.Own.Call)
		}
		if n.Own.Comm != "" {
			text("simccl_comm", n.Own.Comm)
			text("simccl_kind", n.Own.Kind)
		}
		if n.Own.Work != "" {
			text("simccl_work", n.Own.Work)
		}
	}
	return list
}

// ParseGroups parses ASTRA-sim's file of process groups, {"1": [0, 1]}: the members by name.
func ParseGroups(text []byte, groups map[string][]int32) { torch.ParseGroups(text, groups) }
