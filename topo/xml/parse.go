package topoxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/beevik/etree"

	"github.com/simccl/simccl/topo"
)

// Bounds against hostile input; real files have hundreds of elements.
const (
	maxBytes    = 16 << 20
	maxDepth    = 64
	maxElements = 100_000
)

// Error is one complaint; Errors all of a file.
type (
	Error  = topo.Error
	Errors = topo.Errors
)

// Parse reads a topology file. name stands for the file in messages. The error
// is an Errors with every problem found.
func Parse(data []byte, name string) (*topo.Spec, error) {
	root, marks, errs := readTree(data, name)
	if len(errs) > 0 {
		return nil, errs
	}
	if root.Tag != "system" {
		return nil, Errors{{Pos: marks[0].pos, Path: root.Tag, Problem: "the outermost element is not <system>", Hint: "give a file as NCCL_TOPO_DUMP_FILE writes it"}}
	}
	spec := &topo.Spec{Name: name}
	b := builder{marks: marks, spec: spec}
	spec.Root = b.element(root)
	c := checker{spec: spec}
	c.run(marks, data, name)
	return spec, c.errs.Or()
}

// mark is what the position pass keeps of one start tag.
type mark struct {
	pos  topo.Origin
	raw  string // the tag as written
	name string
}

// readTree parses twice: encoding/xml for positions and limits, etree for the
// tree; their elements pair up in document order.
func readTree(data []byte, name string) (*etree.Element, []mark, Errors) {
	if len(data) > maxBytes {
		return nil, nil, Errors{{Pos: topo.Origin{File: name}, Problem: fmt.Sprintf("%d bytes, more than %d", len(data), maxBytes), Hint: "a topology file has some kilobytes"}}
	}
	marks, err := positions(data, name)
	if err != nil {
		return nil, nil, Errors{err}
	}
	doc := etree.NewDocument()
	doc.ReadSettings.PreserveDuplicateAttrs = true // NCCL reads the first
	if e := doc.ReadFromBytes(data); e != nil {
		return nil, nil, Errors{{Pos: topo.Origin{File: name, Line: 1, Col: 1}, Problem: "not well-formed XML: " + e.Error(), Hint: "give a file as NCCL writes it"}}
	}
	root := doc.Root()
	if root == nil || len(marks) == 0 {
		return nil, nil, Errors{{Pos: topo.Origin{File: name, Line: 1, Col: 1}, Problem: "no XML element", Hint: `start with <system version="1">`}}
	}
	return root, marks, nil
}

// positions walks the tokens once and notes where every start tag is.
func positions(data []byte, name string) ([]mark, *Error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Entity = map[string]string{}
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	var marks []mark
	depth := 0
	for {
		line, col := d.InputPos()
		start := d.InputOffset()
		pos := topo.Origin{File: name, Line: line, Col: col}
		tok, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			if depth > 0 {
				return nil, &Error{Pos: pos, Problem: "the file ends inside an element", Hint: "close every element"}
			}
			return marks, nil
		}
		if err != nil {
			line, col = d.InputPos()
			return nil, &Error{Pos: topo.Origin{File: name, Line: line, Col: col}, Problem: "not well-formed XML: " + syntaxText(err), Hint: "give a file as NCCL writes it"}
		}
		switch t := tok.(type) {
		case xml.StartElement:
			depth++
			marks = append(marks, mark{pos: pos, raw: string(data[start:d.InputOffset()]), name: t.Name.Local})
			if depth > maxDepth || len(marks) > maxElements {
				return nil, &Error{Pos: pos, Problem: fmt.Sprintf("more than %d levels or %d elements", maxDepth, maxElements), Hint: "a topology has a few levels and hundreds of elements"}
			}
		case xml.EndElement:
			depth--
		case xml.Directive:
			return nil, &Error{Pos: pos, Problem: "a document type declaration", Hint: "leave it out; NCCL cannot read it either"}
		}
	}
}

func syntaxText(err error) string {
	var s *xml.SyntaxError
	if errors.As(err, &s) {
		return s.Msg
	}
	return err.Error()
}

// builder turns etree's elements into topo's, taking one mark for each.
type builder struct {
	marks []mark
	next  int
	spec  *topo.Spec
}

func (b *builder) element(e *etree.Element) *topo.Element {
	m := mark{pos: topo.Origin{File: b.spec.Name}}
	if b.next < len(b.marks) {
		m = b.marks[b.next]
	}
	b.next++
	out := &topo.Element{Name: e.FullTag(), Origin: m.pos, Open: !strings.HasSuffix(m.raw, "/>")}
	for _, a := range e.Attr {
		out.Attrs = append(out.Attrs, topo.Attr{Name: a.FullKey(), Value: a.Value, Origin: attrPos(m, a.FullKey())})
	}
	for _, c := range e.ChildElements() {
		out.Children = append(out.Children, b.element(c))
	}
	return out
}

// attrPos finds where an attribute stands in its tag.
func attrPos(m mark, name string) topo.Origin {
	quote := byte(0)
	for i := 0; i < len(m.raw); i++ {
		c := m.raw[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case (c == ' ' || c == '\n' || c == '\t' || c == '\r') && strings.HasPrefix(m.raw[i+1:], name):
			rest := strings.TrimLeft(m.raw[i+1+len(name):], " \t\r\n")
			if strings.HasPrefix(rest, "=") {
				return advance(m.pos, m.raw[:i+1])
			}
		}
	}
	return m.pos
}

// advance moves a position over text; columns count bytes from 1.
func advance(pos topo.Origin, text string) topo.Origin {
	for i := 0; i < len(text); i++ {
		pos.Col++
		if text[i] == '\n' {
			pos.Line++
			pos.Col = 1
		}
	}
	return pos
}
