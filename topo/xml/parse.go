package topoxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/beevik/etree"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
)

// MaxBytes bounds a topology or graph file; real ones have kilobytes.
const MaxBytes = 16 << 20

// Limits against hostile input, far above those of real files: NCCL 2.28.9 itself reads 256 elements of 16
// attributes, with names and values of 255 characters.
const (
	maxDepth    = 64
	maxElements = 100_000
	maxAttrs    = 256
	maxName     = 256
	maxValue    = 4096
)

// Error is one complaint; Errors all of a file.
type (
	Error  = topo.Error
	Errors = topo.Errors
)

// Parse reads a topology file. name denotes the file in messages. The error
// is an Errors with every problem found.
func Parse(data []byte, name string) (*topo.Spec, error) {
	root, marks, errs := readTree(data, name)
	if len(errs) > 0 {
		return nil, errs
	}
	if root.Tag != "system" {
		return nil,
			Errors{{Pos: marks[0].pos, Path: root.Tag, Problem: "the outermost element is not <system>",
				Hint: "give a file as NCCL_TOPO_DUMP_FILE writes it"}}
	}
	spec := &topo.Spec{Name: name}
	b := builder{marks: marks, spec: spec}
	spec.Root = b.element(root)
	c := checker{spec: spec, v: vocabularyOf(spec.Library())}
	c.run(marks, data, name)
	return spec, c.errs.Or()
}

// Tree reads any XML file of NCCL's as elements with their places, within the bounds of
// this package. name denotes the file in messages.
func Tree(data []byte, name string) (*topo.Element, Errors) {
	root, marks, errs := readTree(data, name)
	if len(errs) > 0 {
		return nil, errs
	}
	b := builder{marks: marks, spec: &topo.Spec{Name: name}}
	return b.element(root), nil
}

// mark is the position of a start tag and its attributes, which encoding/xml does not keep.
type mark struct {
	pos   topo.Origin
	raw   string // the tag as written
	name  string
	attrs int
}

// readTree parses twice: encoding/xml for positions and limits, etree for the
// tree; their elements pair up in document order.
func readTree(data []byte, name string) (*etree.Element, []mark, Errors) {
	if len(data) > MaxBytes {
		return nil, nil,
			Errors{{Pos: topo.Origin{File: name}, Problem: fmt.Sprintf("%d bytes, more than %d", len(data),
				MaxBytes), Hint: "a topology file has some kilobytes"}}
	}
	marks, err := positions(data, name)
	if err != nil {
		return nil, nil, Errors{err}
	}
	doc := etree.NewDocument()
	doc.ReadSettings.PreserveDuplicateAttrs = true // NCCL reads the first
	if e := doc.ReadFromBytes(data); e != nil {
		return nil, nil,
			Errors{{Pos: topo.Origin{File: name, Line: 1, Col: 1}, Problem: "not well-formed XML: " +
				e.Error(), Hint: "give a file as NCCL writes it"}}
	}
	root := doc.Root()
	if root == nil || len(marks) == 0 {
		return nil, nil, Errors{{Pos: topo.Origin{File: name, Line: 1, Col: 1}, Problem: "no XML element",
			Hint: `start with <system version="1">`}}
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
				return nil, &Error{Pos: pos, Problem: "the file ends inside an element",
					Hint: "close every element"}
			}
			return marks, nil
		}
		if err != nil {
			line, col = d.InputPos()
			return nil, &Error{Pos: topo.Origin{File: name, Line: line, Col: col},
				Problem: "not well-formed XML: " + syntaxText(err), Hint: "give a file as NCCL writes it"}
		}
		switch t := tok.(type) {
		case xml.StartElement:
			depth++
			marks = append(marks, mark{pos: pos, raw: string(data[start:d.InputOffset()]), name: t.Name.Local,
				attrs: len(t.Attr)})
			if depth > maxDepth || len(marks) > maxElements {
				return nil, &Error{Pos: pos, Problem: fmt.Sprintf("more than %d levels or %d elements",
					maxDepth, maxElements), Hint: "a topology has a few levels and hundreds of elements"}
			}
			if e := oversize(&t, &marks[len(marks)-1]); e != nil {
				return nil, e
			}
		case xml.EndElement:
			depth--
		case xml.Directive:
			return nil, &Error{Pos: pos, Problem: "a document type declaration",
				Hint: "leave it out; NCCL cannot read it either"}
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

// builder converts etree's elements to topo's, taking one mark for each.
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
	at := attrPositions(&m)
	for i, a := range e.Attr {
		pos := m.pos
		if i < len(at) {
			pos = at[i]
		}
		out.Attrs = append(out.Attrs, decl.Attr{Name: a.FullKey(), Value: a.Value, Origin: pos})
	}
	for _, c := range e.ChildElements() {
		out.Children = append(out.Children, b.element(c))
	}
	return out
}

// oversize refuses a tag whose parts are longer than any that means something.
func oversize(t *xml.StartElement, m *mark) *Error {
	refuse := func(pos topo.Origin, problem, hint string) *Error {
		return &Error{Pos: pos, Path: termtext.Short(t.Name.Local, 0), Problem: problem, Hint: hint}
	}
	if len(t.Name.Local)+len(t.Name.Space) > maxName {
		return refuse(m.pos, fmt.Sprintf("an element's name of more than %d bytes", maxName),
			"names have some letters")
	}
	if len(t.Attr) > maxAttrs {
		return refuse(attrPositions(m)[maxAttrs], fmt.Sprintf("%d attributes, more than %d: NCCL reads %d",
			len(t.Attr), maxAttrs, ncclAttrs), "remove those that NCCL does not know")
	}
	for i, a := range t.Attr {
		switch {
		case len(a.Name.Local)+len(a.Name.Space) > maxName:
			return refuse(attrPositions(m)[i], fmt.Sprintf("an attribute's name of more than %d bytes",
				maxName), "names have some letters")
		case len(a.Value) > maxValue:
			return refuse(attrPositions(m)[i], fmt.Sprintf("%s=%s: longer than %d bytes", a.Name.Local,
				termtext.Quote(a.Value, 0), maxValue), fmt.Sprintf("shorten it: NCCL reads %d characters",
				ncclChars))
		}
	}
	return nil
}

// attrPositions finds the positions of a tag's attributes, in one pass over it:
// the tag is well-formed, so a name starts at the first character after a blank
// that is outside quotes, and ends at its "=".
//
//	<pci busid="0000:1b:00.0" class = '0x03'>
//	     ^                    ^
func attrPositions(m *mark) []topo.Origin {
	if m.attrs == 0 {
		return nil
	}
	out := make([]topo.Origin, 0, m.attrs)
	pos := m.pos
	quoted := byte(0)
	named := true // the element's own name comes first
	for i := 0; i < len(m.raw) && len(out) < m.attrs; i++ {
		c := m.raw[i]
		switch {
		case quoted != 0:
			if c == quoted {
				quoted, named = 0, false
			}
		case c == '"' || c == '\'':
			quoted = c
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			named = named && len(out) > 0 // a blank ends the element's name, not that before "="
		case !named && c != '=' && c != '/' && c != '>':
			named = true
			out = append(out, pos)
		}
		pos = advance(pos, m.raw[i:i+1])
	}
	for len(out) < m.attrs {
		out = append(out, m.pos)
	}
	return out
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
