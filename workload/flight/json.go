package flight

import (
	"bytes"
	"io"
	"slices"

	"github.com/simccl/simccl/workload/internal/jsonscan"
)

// RecogniseJSON reports whether a text begins like a dump in JSON.
func RecogniseJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte("{")) && (bytes.Contains(head, []byte(`"comm_lib_version"`)) ||
		bytes.Contains(head, []byte(`"profiling_name"`)) ||
		bytes.Contains(head, []byte(`"pg_config"`)) && bytes.Contains(head, []byte(`"pg_status"`)) ||
		bytes.Contains(head, []byte(`"collective_seq_id"`)))
}

// ReadJSON reads a dump as JSON. The error is a *fail.FileError or a *FormatError.
func ReadJSON(in io.Reader, file string) (*Dump, error) {
	s := jsonscan.New(in, file)
	t, err := object(s, 0)
	if err != nil {
		return nil, err
	}
	return dump(file, t)
}

// maxNest is the maximum nesting of a dump's values.
const maxNest = 8

// object reads an object. It skips stack frames, and values nested deeper than any in a dump.
func object(s *jsonscan.Scanner, depth int) (tree, error) {
	t := tree{}
	err := s.Object(func(key []byte) error {
		if string(key) == "frames" {
			return s.Skip()
		}
		k := string(key)
		v, err := value(s, depth+1)
		t[k] = v
		return err
	})
	return t, err
}

func value(s *jsonscan.Scanner, depth int) (any, error) {
	if depth > maxNest {
		return nil, s.Skip()
	}
	switch s.Peek() {
	case '{':
		return object(s, depth)
	case '[':
		var list []any
		err := s.Array(func(int) error {
			v, err := value(s, depth+1)
			list = append(list, v)
			return err
		})
		return list, err
	case '"':
		t, err := s.String()
		return string(t), err
	}
	t, err := s.Number()
	if err != nil {
		return nil, err
	}
	switch string(t) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if n, ok := jsonscan.ParseInt(t); ok && !bytes.ContainsAny(t, ".eE") {
		return n, nil
	}
	f, _ := jsonscan.ParseFloat(t)
	return f, nil
}

func sorted(t tree) []string {
	keys := make([]string, 0, len(t))
	for k := range t { //lint:sorted the keys are sorted next
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
