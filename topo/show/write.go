package show

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/smi"
)

// FormatError reports a format that Write does not know.
type FormatError struct{ Format string }

// Error lists the valid formats.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: write text, json, svg, dot, nccl or matrix", e.Format)
}

// Write writes a host in a format: "text" (80 columns), "wide" (with all bandwidths), "json", "dot" for
// Graphviz, "nccl" (the lines of NCCL's own log) or "matrix" (as nvidia-smi topo -m).
func Write(w io.Writer, h *topo.Host, format string) error {
	switch format {
	case "text", "wide":
		_, err := io.WriteString(w, Text(h, format == "wide"))
		return err
	case "dot", "nccl":
		for _, s := range h.Systems {
			text := strings.Join(Log(s, 0), "\n") + "\n"
			if format == "dot" {
				text = Dot(s)
			}
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
		}
		return nil
	case "matrix":
		for i, host := range decl.Hosts(&topo.Spec{Root: h.Dump}) {
			if _, err := io.WriteString(w, strings.Repeat("\n", min(i, 1))+smi.Of(host.Root).Text()); err !=
				nil {
				return err
			}
		}
		return nil
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(JSON(h))
	}
	return &FormatError{format}
}

// Element is an element of a topology file in JSON, attributes and children in the
// file's order.
type Element struct {
	Name     string      `json:"name"`
	Attrs    [][2]string `json:"attrs"`
	Children []Element   `json:"children"`
}

// ElementJSON converts an element and its subtree for JSON.
func ElementJSON(e *topo.Element) Element {
	out := Element{Name: e.Name, Attrs: [][2]string{}, Children: []Element{}}
	for _, x := range e.Attrs {
		out.Attrs = append(out.Attrs, [2]string{x.Name, x.Value})
	}
	for _, c := range e.Children {
		out.Children = append(out.Children, ElementJSON(c))
	}
	return out
}

// Anonymize numbers guids and host hashes in order of appearance; equal ones
// stay equal, because NCCL compares them.
func Anonymize(root *topo.Element) *topo.Element {
	root = root.Clone()
	numbers := map[string]int{}
	root.Walk(func(e *topo.Element, _ []*topo.Element) {
		for _, attr := range []string{"guid", "host_hash"} {
			v, ok := e.Get(attr)
			if !ok {
				continue
			}
			key := attr + v
			numbers[key] = cmp.Or(numbers[key], len(numbers)+1)
			e.Set(attr, fmt.Sprintf("0x%x", numbers[key]))
		}
	})
	return root
}
