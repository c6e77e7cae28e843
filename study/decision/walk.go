package decision

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// tolerance is the relative difference up to which two numbers count as equal.
const tolerance = 1e-5

// field is a value of a document, or its absence.
type field struct {
	value any
	ok    bool
}

// atLine is the place of a line within a text.
type atLine int

// walk compares two values recursively and emits each place where they differ. A place is a list of keys
// (string), indices (int) and lines (atLine).
func walk(at []any, w, g field, emit func(at []any, was, is string)) {
	if !w.ok || !g.ok {
		emit(at, w.String(), g.String())
		return
	}
	switch was := w.value.(type) {
	case map[string]any:
		is, ok := g.value.(map[string]any)
		if !ok || isPath(at) {
			leaf(at, w, g, emit)
			return
		}
		for _, k := range unionKeys(was, is) {
			old, inW := was[k]
			now, inG := is[k]
			walk(append(at[:len(at):len(at)], k), field{old, inW}, field{now, inG}, emit)
		}
	case []any:
		is, ok := g.value.([]any)
		switch {
		case !ok || isOrder(at):
			leaf(at, w, g, emit)
		case len(is) != len(was):
			emit(at, fmt.Sprintf("%d entries", len(was)), fmt.Sprintf("%d entries", len(is)))
		default:
			for i := range was {
				walk(append(at[:len(at):len(at)], i), field{was[i], true}, field{is[i], true}, emit)
			}
		}
	case string:
		is, ok := g.value.(string)
		if ok && strings.Contains(was+is, "\n") {
			lines(at, was, is, emit)
			return
		}
		leaf(at, w, g, emit)
	default:
		leaf(at, w, g, emit)
	}
}

// leaf compares two values as a whole.
func leaf(at []any, w, g field, emit func(at []any, was, is string)) {
	if equal(w.value, g.value) {
		return
	}
	was, is := w.String(), g.String()
	if isPath(at) {
		was, is = pathText(w.value, g.value), pathText(g.value, w.value)
	}
	emit(at, was, is)
}

// lines compares two texts and emits their first line that differs.
func lines(at []any, was, is string, emit func(at []any, was, is string)) {
	w, g := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range max(len(w), len(g)) {
		var old, now field
		if i < len(w) {
			old = field{strings.TrimSpace(w[i]), true}
		}
		if i < len(g) {
			now = field{strings.TrimSpace(g[i]), true}
		}
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			emit(append(at[:len(at):len(at)], atLine(i+1)), old.String(), now.String())
			return
		}
	}
}

// equal reports whether two values of documents are equal, recursively; numbers may differ by tolerance.
func equal(w, g any) bool {
	switch was := w.(type) {
	case float64:
		is, ok := g.(float64)
		return ok && math.Abs(was-is) <= tolerance*max(math.Abs(was), math.Abs(is), 1e-9)
	case []any:
		is, ok := g.([]any)
		if !ok || len(is) != len(was) {
			return false
		}
		for i := range was {
			if !equal(was[i], is[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		is, ok := g.(map[string]any)
		if !ok || len(is) != len(was) {
			return false
		}
		for _, k := range unionKeys(was, nil) {
			v, ok := is[k]
			if !ok || !equal(was[k], v) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(w, g)
}

// String formats the value on at most one line: lists of numbers and names separated by blanks, other lists
// and objects as JSON.
func (f field) String() string {
	if !f.ok {
		return "none"
	}
	switch v := f.value.(type) {
	case string:
		return printable(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		if text, ok := listText(v); ok {
			return text
		}
	}
	text, err := json.Marshal(f.value)
	if err != nil {
		return fmt.Sprint(f.value)
	}
	return clip(string(text))
}

// listText formats a list of numbers or names; ok is false for other lists.
func listText(list []any) (string, bool) {
	words := make([]string, len(list))
	for i, v := range list {
		switch v.(type) {
		case string, float64:
			words[i] = field{v, true}.String()
		default:
			return "", false
		}
	}
	return clip(strings.Join(words, " ")), len(list) > 0
}

// printable escapes a document's text for a terminal.
func printable(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		s = strconv.Quote(s)
	}
	return clip(s)
}

// clip shortens a text to 160 characters.
func clip(s string) string {
	const most = 160
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
