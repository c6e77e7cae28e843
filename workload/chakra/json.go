package chakra

import (
	"bytes"
	"io"

	"github.com/simccl/simccl/workload/internal/jsonscan"
)

// RecogniseJSON reports whether a text begins like the JSON form.
func RecogniseJSON(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) &&
		bytes.Contains(head, []byte(`"workload_graph"`))
}

// ReadJSON reads the JSON form of Chakra's feeder. The error is a *fail.FileError.
func ReadJSON(in io.Reader, file string) (*Trace, error) {
	s := jsonscan.New(in, file)
	t := &Trace{File: file, Groups: map[string][]int32{}}
	found := false
	err := s.Object(func(key []byte) error {
		if string(key) != "workload_graph" {
			return s.Skip()
		}
		found = true
		return s.Array(func(int) error {
			var n Node
			if err := s.Object(func(key []byte) error { return jsonMember(s, &n, key) }); err != nil {
				return err
			}
			t.Nodes = append(t.Nodes, n)
			return nil
		})
	})
	if err == nil && !found {
		err = s.Fail("Chakra's JSON form has workload_graph", "there are no nodes")
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func jsonMember(s *jsonscan.Scanner, n *Node, key []byte) (err error) {
	var v int64
	ids := func() (out []uint64) {
		var list []int64
		list, _, err = s.Ints()
		for _, x := range list {
			out = append(out, uint64(x))
		}
		return out
	}
	switch string(key) {
	case "Id", "id":
		v, err = s.Int()
		n.ID = uint64(v)
	case "Name", "name":
		var t []byte
		t, err = s.Text()
		n.Name = string(t)
	case "NodeType", "type":
		v, err = s.Int()
		n.Type = Type(clamp(v))
	case "ctrlDeps", "ctrl_deps":
		n.Ctrl = ids()
	case "data_deps", "dataDeps":
		n.Data = ids()
	case "runtime", "duration_micros":
		v, err = s.Int()
		n.Dur = uint64(max(v, 0))
	case "is_cpu_op":
		var t []byte
		t, err = s.Text()
		n.CPU = string(t) == "true" || string(t) == "1"
	default:
		// The other members are attributes by their names.
		a := attribute{name: string(key), kind: 9}
		if s.Peek() == '"' {
			var t []byte
			t, err = s.Text()
			a.text, a.kind = string(t), 29
			a.num, _ = jsonscan.ParseInt(t)
		} else {
			a.num, err = s.Int()
		}
		n.set(&a)
	}
	return err
}
