// Package jsonfile reads JSON files that people write: every error has a position, the problem, and what to
// write instead.
package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/termtext"
)

// Reader reads a JSON file value by value and knows the offset of each.
type Reader struct {
	file string
	data []byte
	dec  *json.Decoder
}

// New returns a Reader; file is the name in errors. Decode refuses unknown members.
func New(data []byte, file string) *Reader {
	r := &Reader{file: file, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.DisallowUnknownFields()
	return r
}

// Fail returns a FileError at an offset.
func (r *Reader) Fail(at int64, hint, format string, args ...any) error {
	at = min(max(at, 0), int64(len(r.data)))
	before := r.data[:at]
	line := 1 + bytes.Count(before, []byte("\n"))
	return &fail.FileError{File: r.file, Line: line, Col: int(at) - bytes.LastIndexByte(before, '\n'),
		Problem: termtext.Short(fmt.Sprintf(format, args...), 400), Hint: termtext.Short(hint, 400)}
}

// Next returns the offset of the next value.
func (r *Reader) Next() int64 {
	at := r.dec.InputOffset()
	for at < int64(len(r.data)) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[at]) >= 0 {
		at++
	}
	return at
}

// placed adds a position to an error of the decoder; from is the offset of the value.
func (r *Reader) placed(err error, from int64) error {
	var own *fail.FileError
	var s *json.SyntaxError
	var t *json.UnmarshalTypeError
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case errors.As(err, &s):
		return r.Fail(s.Offset-1, "", "not JSON: %v", err)
	case errors.As(err, &t) && t.Field != "":
		return r.Fail(from, "", "%s: %s where %s is expected", termtext.Short(t.Field, 0),
			termtext.Short(t.Value, 0), KindOf(t.Type))
	case errors.As(err, &t):
		return r.Fail(from, "", "%s where %s is expected", termtext.Short(t.Value, 0), KindOf(t.Type))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return r.Fail(int64(len(r.data)), "", "the file ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return r.Fail(from, "", "unknown member %s", termtext.Short(name, 0))
	}
	return r.Fail(from, "", "%s", termtext.Short(err.Error(), 0))
}

// KindOf names the JSON value that a Go type requires.
func KindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object { … }"
	case reflect.Slice, reflect.Array:
		return "a list [ … ]"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "a whole number"
	}
	return "a " + t.Kind().String()
}

// Decode decodes the next value.
func (r *Reader) Decode(v any) error {
	at := r.Next()
	if err := r.dec.Decode(v); err != nil {
		return r.placed(err, at)
	}
	if c, found := control(reflect.ValueOf(v)); found {
		return r.Fail(at, "write names without control characters", "a text holds the control character %U",
			c)
	}
	return nil
}

// control finds a character in the strings of a value that acts on a terminal,
// or breaks its line.
func control(v reflect.Value) (rune, bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return control(v.Elem())
	case reflect.String:
		for _, c := range v.String() {
			if termtext.Control(c) {
				return c, true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if c, found := control(v.Field(i)); found {
				return c, true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if c, found := control(v.Index(i)); found {
				return c, true
			}
		}
	}
	return 0, false
}

// Object reads an object: member is called at each key, with its place, and
// reads the value.
func (r *Reader) Object(member func(key string, at int64) error) error {
	return r.walk('{', "an object { … }", func(at int64) error {
		key, err := r.dec.Token()
		if err != nil {
			return r.placed(err, at)
		}
		return member(key.(string), at)
	})
}

// List reads a list: item is called at each place and reads the value.
func (r *Reader) List(item func(at int64) error) error {
	return r.walk('[', "a list [ … ]", item)
}

func (r *Reader) walk(open json.Delim, what string, each func(at int64) error) error {
	at := r.Next()
	switch t, err := r.dec.Token(); {
	case err != nil:
		return r.placed(err, at)
	case t != open:
		return r.Fail(at, "", "%s is expected", what)
	}
	for r.dec.More() {
		if err := each(r.Next()); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()
	return r.placed(err, r.Next())
}

// End returns an error if anything follows the value.
func (r *Reader) End() error {
	if at := r.Next(); at < int64(len(r.data)) {
		return r.Fail(at, "", "something follows the object")
	}
	return nil
}
