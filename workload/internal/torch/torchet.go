package torch

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/internal/jsonscan"
)

// Trace is one rank's PyTorch execution trace, reduced to its process-group calls.
type Trace struct {
	File   string
	Schema string
	Nodes  int
	Comms  []Comm
	// Groups are the members of process groups by name; empty for all ranks.
	Groups map[string][]int32
	// World is the size of the largest group.
	World int
	// Device is the number of the GPU that tensors of calls were on, -1 unknown.
	Device int
}

// Comm is one call of a process group.
type Comm struct {
	Node      int64  // identifier
	RecordID  int64  // rf_id, Kineto's Record function id
	Name      string // allreduce, wait, coalesced …
	Type      string
	In, Out   int64 // elements
	InSplit   []int64
	Root      int32 // root or peer in the group
	Group     string
	Desc      string
	Size      int
	fromAttrs bool
}

// Recognise reports whether a text begins like an execution trace.
func Recognise(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) &&
		bytes.Contains(head, []byte(`"schema"`)) && bytes.Contains(head, []byte(`"nodes"`))
}

// Read parses a trace. It returns a *fail.FileError.
func Read(in io.Reader, file string) (*Trace, error) {
	s := jsonscan.New(in, file)
	r := reader{s: s, t: &Trace{File: file, Groups: map[string][]int32{}, Device: -1}}
	found := false
	err := s.Object(func(key []byte) error {
		switch string(key) {
		case "schema":
			t, err := s.Text()
			r.t.Schema = string(t)
			return err
		case "nodes":
			found = true
			return s.Array(func(int) error { return r.node() })
		}
		return s.Skip()
	})
	if err == nil && !found {
		err = s.Fail("an execution trace has nodes", "there are no nodes")
	}
	if err != nil {
		return nil, err
	}
	return r.t, nil
}

type reader struct {
	s *jsonscan.Scanner
	t *Trace
}

// values is the inputs of a node with their shapes and types.
type values struct {
	list   []any
	shapes []any
	types  []any
}

// node reads one operator of the trace and keeps it if it is about communication.
func (r *reader) node() error {
	var c Comm
	var in values
	name := ""
	r.t.Nodes++
	err := r.s.Object(func(key []byte) error {
		wanted := name == commName || name == groupsName
		switch string(key) {
		case "id":
			n, err := r.s.Int()
			c.Node = n
			return err
		case "name":
			t, err := r.s.Text()
			name = string(t)
			return err
		case "inputs":
			if !wanted {
				return r.s.Skip()
			}
			if r.s.Peek() == '[' { // before schema 1.0.2
				return r.list(&in.list)
			}
			return r.s.Object(func(key []byte) error {
				switch string(key) {
				case "values":
					return r.list(&in.list)
				case "shapes":
					return r.list(&in.shapes)
				case "types":
					return r.list(&in.types)
				}
				return r.s.Skip()
			})
		case "input_shapes":
			return r.listIf(wanted, &in.shapes)
		case "input_types":
			return r.listIf(wanted, &in.types)
		case "rf_id":
			n, err := r.s.Int()
			c.RecordID = n
			return err
		case "attrs":
			if r.s.Peek() != '[' {
				return r.s.Skip()
			}
			return r.s.Array(func(int) error { return r.attribute(&c, wanted) })
		}
		return r.s.Skip()
	})
	if err != nil {
		return err
	}
	r.keep(name, &c, &in)
	return nil
}

// Names of the nodes that are kept.
const (
	commName   = "record_param_comms"
	groupsName = "## process_group:init ##"
	launchName = "nccl:coalesced"
)

// keep stores a node if it is about communication.
func (r *reader) keep(name string, c *Comm, in *values) {
	switch name {
	case launchName:
		r.t.Comms = append(r.t.Comms, Comm{Node: c.Node, RecordID: c.RecordID, Name: "coalesced"})
	case groupsName:
		if len(in.list) > 0 {
			if text, ok := in.list[0].(string); ok {
				ParseGroups([]byte(text), r.t.Groups)
				r.world(text)
			}
		}
	case commName:
		if r.inputs(c, in) {
			r.t.World = max(r.t.World, c.Size)
			r.t.Comms = append(r.t.Comms, *c)
		}
	}
}

// world updates t.World from the group sizes in the text of the node that lists the groups.
func (r *reader) world(text string) {
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, `"group_size":`)
		if !ok {
			return
		}
		n, _ := jsonscan.ParseInt([]byte(strings.TrimLeft(after, " ")))
		r.t.World = max(r.t.World, int(min(n, 1<<24)))
		rest = after
	}
}

// inputs reads [tensors,] seq, (group, description), root or peer, name, splits …
func (r *reader) inputs(c *Comm, in *values) bool {
	at := 0
	typ := ""
	if len(in.types) > 0 {
		typ, _ = in.types[0].(string)
	}
	if i := strings.Index(typ, "Tensor("); i >= 0 {
		at = 1
		if !c.fromAttrs {
			c.Type, _, _ = strings.Cut(typ[i+len("Tensor("):], ")")
			if len(in.shapes) > 0 {
				c.In = elements(in.shapes[0])
				c.Out = c.In
			}
		}
		r.device(in.list)
	}
	if len(in.list) < at+4 {
		return c.Name != ""
	}
	v := in.list[at:]
	if pg, ok := v[1].([]any); ok && len(pg) == 2 {
		c.Group, _ = pg[0].(string)
		c.Desc, _ = pg[1].(string)
	}
	root, _ := v[2].(int64)
	c.Root = int32(min(max(root, -1), 1<<30))
	if name, ok := v[3].(string); ok && c.Name == "" {
		c.Name = name
	}
	if n, ok := v[len(v)-1].(int64); ok && c.Size == 0 {
		c.Size = int(min(max(n, 0), 1<<24))
	}
	if len(v) > 4 && len(c.InSplit) == 0 {
		if l, ok := v[4].([]any); ok {
			for _, x := range l {
				n, _ := x.(int64)
				c.InSplit = append(c.InSplit, n)
			}
		}
	}
	return c.Name != ""
}

// device sets the GPU's number from the first tensor: [id, storage, …, "cuda:1"].
func (r *reader) device(list []any) {
	v := list
	for len(v) > 0 {
		inner, ok := v[0].([]any)
		if !ok {
			break
		}
		v = inner
	}
	if len(v) > 5 {
		if dev, ok := v[5].(string); ok {
			if n, ok := strings.CutPrefix(dev, "cuda:"); ok {
				k, _ := jsonscan.ParseInt([]byte(n))
				r.t.Device = int(k)
			}
		}
	}
}

// elements returns the product of a shape, or the sum of the products of a list of shapes.
func elements(shape any) int64 {
	list, _ := shape.([]any)
	p, sum, nested := int64(1), int64(0), false
	for _, d := range list {
		switch x := d.(type) {
		case int64:
			if x < 0 || x > 1<<40 || p > 1<<40 {
				return 0
			}
			p *= x
		case []any:
			nested = true
			sum += elements(x)
		}
	}
	if nested {
		return sum
	}
	return p
}

// attribute reads one {name, type, value}.
func (r *reader) attribute(c *Comm, wanted bool) error {
	name := ""
	return r.s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "name":
			t, err := r.s.Text()
			name = string(t)
			return err
		case "value":
			var t []byte
			switch name {
			case "rf_id":
				c.RecordID, err = r.s.Int()
				return err
			case "in_msg_nelems":
				c.In, err = r.s.Int()
				c.fromAttrs = true
				return err
			case "out_msg_nelems":
				c.Out, err = r.s.Int()
				return err
			case "in_split_size":
				c.InSplit, _, err = r.s.Ints()
				return err
			case "pg_size":
				n, err := r.s.Int()
				c.Size = int(min(max(n, 0), 1<<24))
				return err
			case "collective_name", "dtype":
				if !wanted {
					break
				}
				t, err = r.s.Text()
				if name == "dtype" {
					c.Type = string(t)
				} else {
					c.Name = string(t)
				}
				return err
			}
		}
		return r.s.Skip()
	})
}

func (r *reader) listIf(wanted bool, to *[]any) error {
	if !wanted {
		return r.s.Skip()
	}
	return r.list(to)
}

func (r *reader) list(to *[]any) error {
	v, err := r.value(0)
	*to, _ = v.([]any)
	return err
}

// maxNest is the maximum nesting of the inputs of kept nodes.
const maxNest = 6

func (r *reader) value(depth int) (any, error) {
	if depth > maxNest {
		return nil, r.s.Skip()
	}
	switch r.s.Peek() {
	case '[':
		list := []any{}
		err := r.s.Array(func(int) error {
			v, err := r.value(depth + 1)
			list = append(list, v)
			return err
		})
		return list, err
	case '{':
		return nil, r.s.Skip()
	case '"':
		t, err := r.s.String()
		return string(t), err
	}
	t, err := r.s.Number()
	if n, ok := jsonscan.ParseInt(t); ok && err == nil {
		return n, nil
	}
	return nil, err
}

// Program converts the traces of ranks 0, 1, … to a program: the calls in order, one stream per group,
// without computations. With symmetric, ranks without a trace do what rank 0 does.
func Program(traces []*Trace, ranks int, symmetric bool) (p *workload.Program, notes []string, err error) {
	if len(traces) == 0 {
		return nil, nil, fmt.Errorf("there are no traces")
	}
	if ranks < len(traces) {
		ranks = len(traces)
	}
	if ranks > len(traces) && !symmetric {
		return nil, nil, fmt.Errorf("the job has %d ranks, and there are %d traces; give the others too, "+
			"or --symmetric where all ranks do the same", ranks, len(traces))
	}
	b := &builder{Builder: NewBuilder(ranks)}
	for r, t := range traces {
		b.rank(r, t)
		b.P.Of[r] = int32(r)
	}
	notes = append(notes, "an execution trace has no times: calls follow each other; give the Kineto "+
		"recording of the same steps for times")
	if b.unknown > 0 {
		notes = append(notes, fmt.Sprintf("%d calls have names or types that are not known and were left out",
			b.unknown))
	}
	if ranks > len(traces) {
		notes = append(notes, fmt.Sprintf("%d ranks have no trace and do what rank 0 does",
			ranks-len(traces)))
	}
	return b.P, notes, nil
}

type builder struct {
	*Builder
	unknown int
}

func (b *builder) rank(r int, t *Trace) {
	list := workload.List{Name: fmt.Sprintf("rank%d", r)}
	comms := slices.Clone(t.Comms)
	slices.SortStableFunc(comms, func(x, y Comm) int { return int(min(max(x.Node-y.Node, -1), 1)) })
	var open []workload.Step
	flush := func() {
		list.Steps = append(list.Steps, Launch(open)...)
		open = nil
	}
	for i := range comms {
		c := &comms[i]
		switch c.Name {
		case "wait", "init", "":
			continue
		case "coalesced":
			flush()
			continue
		}
		members := t.Groups[c.Group]
		n := len(members)
		if n == 0 {
			members, n = nil, len(b.P.Of)
		}
		call, ok := Translate(c.Name, c.Type, c.In, c.Out, int64(n), c.Root, c.InSplit)
		if !ok {
			b.unknown++
			continue
		}
		call.Comm = b.Comm(c.Group, c.Desc, members)
		s := b.Issue(&call)
		if c.Name == "send" || c.Name == "recv" {
			open = append(open, s)
			continue
		}
		flush()
		list.Steps = append(list.Steps, s)
	}
	flush()
	b.P.Lists = append(b.P.Lists, list)
}
