package topoxml

import (
	"bytes"

	"github.com/simccl/simccl/topo"
)

// Write renders a Spec's tree in the form of NCCL_TOPO_DUMP_FILE: two blanks a
// level, one element a line. Unknown elements and attributes are written too.
func Write(root *topo.Element) []byte {
	var b bytes.Buffer
	write(&b, root, 0)
	return b.Bytes()
}

func write(b *bytes.Buffer, e *topo.Element, indent int) {
	for range indent {
		b.WriteByte(' ')
	}
	b.WriteString("<" + e.Name)
	for _, a := range e.Attrs {
		b.WriteString(" " + a.Name + `="`)
		escape(b, a.Value)
		b.WriteByte('"')
	}
	if len(e.Children) == 0 {
		b.WriteString("/>\n")
		return
	}
	b.WriteString(">\n")
	for _, c := range e.Children {
		write(b, c, indent+2)
	}
	for range indent {
		b.WriteByte(' ')
	}
	b.WriteString("</" + e.Name + ">\n")
}

// escape writes an attribute value; NCCL writes and reads values as they are,
// so only what would break the XML is replaced.
func escape(b *bytes.Buffer, s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '"':
			b.WriteString("&quot;")
		case '\n':
			b.WriteString("&#xA;")
		case '\r':
			b.WriteString("&#xD;")
		case '\t':
			b.WriteString("&#x9;")
		default:
			b.WriteByte(c)
		}
	}
}
