package mscclpp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/simccl/simccl/plan/schedule"
)

// Bounds of a JSON text.
const (
	maxNodes = 1 << 22
	maxDepth = 12
)

// node is a value of a JSON text with its position.
type node struct {
	pos     schedule.Pos
	kind    byte // { object, [ array, " string, 0 number, t boolean, n null
	text    string
	members map[string]*node
	list    []*node
}

// tree is the state of reading a JSON text.
type tree struct {
	dec   *json.Decoder
	text  []byte
	at    int64 // byte offset of place
	place schedule.Pos
	nodes int
	s     *schedule.Schedule // for errors
}

func newTree(text []byte, s *schedule.Schedule) *tree {
	t := &tree{s: s, dec: json.NewDecoder(bytes.NewReader(text)), text: text,
		place: schedule.Pos{Line: 1, Col: 1}}
	t.dec.UseNumber()
	return t
}

// here advances place to the next token, and returns it.
func (t *tree) here() schedule.Pos {
	to := t.dec.InputOffset()
	for to < int64(len(t.text)) && bytes.IndexByte([]byte(" \t\r\n,:"), t.text[to]) >= 0 {
		to++
	}
	for ; t.at < to; t.at++ {
		if t.place.Col++; t.text[t.at] == '\n' {
			t.place = schedule.Pos{Line: t.place.Line + 1, Col: 1}
		}
	}
	return t.place
}

func (t *tree) fail(at schedule.Pos, format string, args ...any) error {
	return t.s.Fault(schedule.Whole(at), format, args...)
}

func (t *tree) token() (json.Token, schedule.Pos, error) {
	pos := t.here()
	tok, err := t.dec.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil, pos, t.fail(pos, "the text ends here: it is cut off")
	case err != nil:
		return nil, pos, t.fail(pos, "no JSON: %v", err)
	}
	return tok, pos, nil
}

// value reads the next value.
func (t *tree) value(depth int) (*node, error) {
	tok, pos, err := t.token()
	if err != nil {
		return nil, err
	}
	if t.nodes++; t.nodes > maxNodes || depth > maxDepth {
		return nil, t.fail(pos, "more than %d values or %d levels", maxNodes, maxDepth)
	}
	n := &node{pos: pos}
	switch tok := tok.(type) {
	case string:
		n.kind, n.text = '"', tok
	case json.Number:
		n.kind, n.text = '0', tok.String()
	case bool:
		n.kind, n.text = 't', strconv.FormatBool(tok)
	case nil:
		n.kind = 'n'
	case json.Delim:
		n.kind = byte(tok)
		if n.kind == '[' {
			return n, t.elements(n, depth)
		}
		return n, t.object(n, depth)
	}
	return n, nil
}

func (t *tree) elements(n *node, depth int) error {
	for t.dec.More() {
		v, err := t.value(depth + 1)
		if err != nil {
			return err
		}
		n.list = append(n.list, v)
	}
	_, _, err := t.token()
	return err
}

func (t *tree) object(n *node, depth int) error {
	n.members = map[string]*node{}
	for t.dec.More() {
		key, pos, err := t.token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		v, err := t.value(depth + 1)
		if err != nil {
			return err
		}
		if n.members[name] != nil {
			return t.fail(pos, "a second member %q", name)
		}
		n.members[name] = v
	}
	_, _, err := t.token()
	return err
}
