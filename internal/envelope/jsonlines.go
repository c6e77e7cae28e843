package envelope

import (
	"cmp"
	"encoding/json"
	"strings"
)

// members are the names under which programs that ship logs keep a line: Docker's
// json-file and Fluent Bit (log), journalctl -o json (MESSAGE), Cloud Logging
// (textPayload), Loki (line), Splunk (_raw), others.
var members = [...]string{"log", "MESSAGE", "message", "msg", "textPayload", "line", "_raw"}

// dockerPiece is the length at which Docker splits a line; the rest follows in the next object.
const dockerPiece = 16 << 10

// jsonLines extracts lines from log objects, one per line. It applies only if every line that is not blank is
// one.
func (t *Text) jsonLines() {
	if !strings.HasPrefix(t.first(), "{") {
		return
	}
	var out []Line
	goes := map[string]int{} // stream → the line that goes on, and its index plus one
	for _, l := range t.Lines {
		text := strings.TrimSpace(l.Text)
		if text == "" {
			continue
		}
		line, stream, ok := ofObject(text)
		if !ok {
			return
		}
		more := len(line) >= dockerPiece && !strings.HasSuffix(line, "\n")
		at := l.Column + max(0, strings.Index(l.Text, line[:min(len(line), 8)]))
		for i, part := range strings.Split(strings.TrimSuffix(line, "\n"), "\n") {
			part = strings.TrimSuffix(part, "\r")
			if have := goes[stream]; i == 0 && have > 0 {
				out[have-1].Text += part
				continue
			}
			out = append(out, Line{l.Number, at, part})
		}
		have := goes[stream]
		if delete(goes, stream); more {
			have = cmp.Or(have, len(out))
			goes[stream] = have
		}
	}
	t.Lines = out
	t.removed("JSON lines")
	t.terminal()
}

// ofObject returns the line in a log object, and its stream.
func ofObject(text string) (line, stream string, ok bool) {
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		return "", "", false
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil {
		return "", "", false
	}
	for _, name := range members {
		if raw, has := object[name]; has && json.Unmarshal(raw, &line) == nil {
			_ = json.Unmarshal(object["stream"], &stream) // absent in most
			return line, stream, true
		}
	}
	return "", "", false
}
