package inputs

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/simccl/simccl/internal/envelope"
)

// Look is the number of bytes of a content that are examined. Reports that contain a matrix are tens of
// megabytes long.
const Look = 64 << 20

// headSize is the number of bytes that suffice for formats that are recognised by their beginning.
const headSize = 64 << 10

// Found is a kind that a content has, and where that shows.
type Found struct {
	Kind      Kind
	Line, Col int // from 1; within compressed or wrapped content, of the content
	at        int // offset in the Verdict's Text
}

// Verdict lists the kinds of content found, the main one first: a log of NCCL may contain a table of
// nccl-tests.
type Verdict struct {
	Found []Found
	// Wrapped lists the compression formats that were removed, outermost first: gzip, zstd.
	Wrapped []string
	// Note describes a content of unknown kind.
	Note string
	// Text is the content, taken out of that, as far as it was looked at.
	Text []byte

	lines []envelope.Line // of Text, where it was pasted or logged; nil otherwise
}

// Kind returns the main kind, Unknown if there is none.
func (v *Verdict) Kind() Kind {
	if len(v.Found) == 0 {
		return Unknown
	}
	return v.Found[0].Kind
}

// Is reports whether the content, or a part of it, is of one of the kinds.
func (v *Verdict) Is(kinds ...Kind) bool { return v.of(kinds) != nil }

func (v *Verdict) of(kinds []Kind) *Found {
	for i := range v.Found {
		if slices.Contains(kinds, v.Found[i].Kind) {
			return &v.Found[i]
		}
	}
	return nil
}

// Commands lists the commands that accept the content, those for its main kind first.
func (v *Verdict) Commands() []string {
	out := []string{}
	for _, f := range v.Found {
		for _, c := range f.Kind.row().commands {
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

// XML returns the topology within the content, preserving its line numbers. Any other content is returned
// whole.
func (v *Verdict) XML() []byte {
	f := v.of([]Kind{Topology, TopologyHosts, Template, AMDTopology})
	if f == nil || f.at == 0 && v.lines == nil {
		return v.Text
	}
	text := v.Text[f.at:]
	if i := bytes.Index(text, []byte(systemEnd)); i >= 0 {
		text = text[:i+len(systemEnd)]
	}
	var out bytes.Buffer
	number, index := 1, bytes.Count(v.Text[:f.at], []byte("\n"))
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		for ; i+index < len(v.lines) && number < v.lines[i+index].Number || i == 0 &&
			number < f.Line; number++ {
			out.WriteByte('\n')
		}
		if i == 0 {
			out.Write(bytes.Repeat([]byte(" "), f.Col-1))
		}
		out.Write(line)
		number++
	}
	return out.Bytes()
}

// OtherError is a content of another kind than a command takes.
type OtherError struct {
	File string
	Found
	Wants []Kind
}

// Error names the position, the kind of the content and the command that reads it.
func (e *OtherError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: this is %s", e.File, e.Line, e.Col, e.Kind.What())
	if use := e.Kind.use(); use != "" {
		s += "; " + use
	}
	return s
}

// Take returns a content decompressed and without its envelope if it is of one of the kinds, or of no known
// kind; the reader then reports what is wrong. limit is the largest unpacked size, in bytes.
func Take(data []byte, file string, limit int64, kinds ...Kind) ([]byte, error) {
	v := Of(data)
	switch err := v.Want(file, kinds...); {
	case err != nil:
		return nil, err
	case len(v.Wrapped) == 0:
		return data, nil
	case int64(len(v.Text)) > limit:
		return nil, fmt.Errorf("%s: more than %d bytes unpacked", file, limit)
	}
	return v.Text, nil
}

// UnknownError is a content of no kind where one of some is wanted.
type UnknownError struct {
	File, Note string
	Wants      string // "a machine"
	Kinds      []Kind
}

// Error describes the content and lists the kinds that are read.
func (e *UnknownError) Error() string {
	s := e.File + ":1:1: not known as " + e.Wants
	if e.Note != "" {
		s += ": " + e.Note
	}
	for i, k := range e.Kinds {
		switch i {
		case 0:
			s += "; give "
		case len(e.Kinds) - 1:
			s += " or "
		default:
			s += ", "
		}
		s += k.What()
	}
	return s
}

// Want returns an *OtherError if the content is of a known kind that is not one of kinds. A content of no
// known kind passes: its reader returns the error with the position.
func Want(data []byte, file string, kinds ...Kind) error {
	v := Of(data)
	return v.Want(file, kinds...)
}

// Want refuses what is known and of none of some kinds.
func (v *Verdict) Want(file string, kinds ...Kind) error {
	if len(v.Found) == 0 || v.Is(kinds...) {
		return nil
	}
	return &OtherError{File: file, Found: v.Found[0], Wants: kinds}
}

// Of identifies a content. The beginning of a file is enough for most kinds.
func Of(data []byte) Verdict {
	text, wrapped := unpack(data[:min(len(data), Look)])
	v := Verdict{Wrapped: wrapped, Text: text}
	if k := binaryKind(text); k != Unknown {
		v.add(k, 0)
		return v
	}
	if v.look(); len(v.Found) > 0 || len(text) == 0 {
		return v
	}
	if t, err := envelope.Open(text[:min(len(text), openSize)]); err == nil && len(t.Removed) > 0 {
		o := Verdict{Wrapped: slices.Concat(wrapped, t.Removed), Text: []byte(t.String()), lines: t.Lines}
		if o.look(); len(o.Found) > 0 {
			return o
		}
	}
	if v.Note == "" {
		v.Note = describe(text)
	}
	return v
}

// openSize is the number of bytes of a text from which envelopes (prompts, log prefixes) are removed.
const openSize = 16 << 20

// look recognises the text and fills Found or Note.
func (v *Verdict) look() {
	body := bytes.TrimPrefix(v.Text, []byte("\xef\xbb\xbf"))
	from := len(v.Text) - len(bytes.TrimLeft(body, " \t\r\n"))
	switch head := v.Text[from:min(len(v.Text), from+headSize)]; {
	case len(head) == 0:
		v.Note = "it is empty"
	case head[0] == '<':
		v.markup(from)
	case head[0] == '{', head[0] == '[' && len(head) > 1 && bytes.IndexByte([]byte("{\r\n\t "), head[1]) >= 0:
		v.json(from)
	}
	if len(v.Found) == 0 && v.Note == "" {
		v.text(from)
	}
}

// add notes a kind that shows at an offset of the text.
func (v *Verdict) add(k Kind, at int) {
	if at < 0 || v.Is(k) {
		return
	}
	line, col := 1+bytes.Count(v.Text[:at], []byte("\n")), at-bytes.LastIndexByte(v.Text[:at], '\n')
	if line <= len(v.lines) { // of the file, not of the extracted text
		col += v.lines[line-1].Column - 1
		line = v.lines[line-1].Number
	}
	v.Found = append(v.Found, Found{k, line, col, at})
}

// describe describes a content of unknown kind for Note.
func describe(text []byte) string {
	head := text[:min(len(text), headSize)]
	if bytes.IndexByte(head, 0) >= 0 {
		return fmt.Sprintf("binary data that begins with the bytes % x", head[:min(len(head), 8)])
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	if len(line) > 60 {
		line = append(slices.Clone(line[:60]), "…"...)
	}
	return fmt.Sprintf("text that begins with %q", line)
}
