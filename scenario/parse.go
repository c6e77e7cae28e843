package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/jsonfile"
)

// Value is a JSON value of a Grid, kept as it was written.
type Value = json.RawMessage

// FieldError is a member of a Spec that means nothing.
type FieldError struct {
	Path    string // "network.faults[0]"
	Value   string // as written
	Problem string // what is wrong
	Hint    string // what to write instead; may be empty
}

// Error names the member, its value, the problem and the remedy.
func (e *FieldError) Error() string {
	s := e.Path + ": " + e.Problem
	if e.Value != "" {
		s = fmt.Sprintf("%s %s: %s", e.Path, e.Value, e.Problem)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Parse reads a scenario file and validates it. Errors are *fail.FileError, with
// file, line and column; several are joined.
func Parse(data []byte, file string) (Spec, error) {
	s, _, err := ParsePlaced(data, file)
	return s, err
}

// ParsePlaced is Parse that also returns a function which gives FieldErrors of
// later stages, such as Load's, their place in the file.
func ParsePlaced(data []byte, file string) (Spec, func(error) error, error) {
	var s Spec
	places, err := jsonfile.Strict(data, file, &s)
	if err != nil {
		return Spec{}, nil, err
	}
	if s.Format != FormatVersion {
		return Spec{}, nil, places.Fail("scenario", fmt.Sprintf(`write "scenario": %d`, FormatVersion),
			"scenario format %d is not known", s.Format)
	}
	placed := func(err error) error { return place(places, err) }
	return s, placed, placed(s.Validate())
}

// place gives every FieldError of err its line and column.
func place(p *jsonfile.Places, err error) error {
	if err == nil {
		return nil
	}
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	for i, e := range list {
		var f *FieldError
		if errors.As(e, &f) {
			problem := f.Path + ": " + f.Problem
			if f.Value != "" {
				problem = f.Path + " " + f.Value + ": " + f.Problem
			}
			list[i] = p.Fail(f.Path, f.Hint, "%s", problem)
		}
	}
	return errors.Join(list...)
}

// JSON is the scenario file of a Spec, indented, ending with a newline.
func (s Spec) JSON() []byte {
	s.Format = FormatVersion
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		panic(err) // a Spec holds strings and integers, and a Grid's values were JSON when they were read
	}
	return []byte(b.String())
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// sorted lists a map's keys in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
