package jsonfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Places are the offsets of a file's values by path: "machine.nodes[0].count".
type Places struct {
	r  *Reader
	at map[string]int64
}

// Fail returns a FileError at the value with a path, or at the nearest enclosing value that the file has.
func (p *Places) Fail(path, hint, format string, args ...any) error {
	for {
		if at, ok := p.at[path]; ok {
			return p.r.Fail(at, hint, format, args...)
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return p.r.Fail(p.at[""], hint, format, args...)
		}
		path = path[:cut]
	}
}

// Strict decodes one JSON value into *v and returns the positions of its parts. An unknown member, a repeated
// member, a value of another type and anything after the value are errors with a position. Structs, maps with
// string keys, slices and scalars are read recursively; types with their own UnmarshalJSON are decoded whole.
func Strict(data []byte, file string, v any) (*Places, error) {
	p := &Places{r: New(data, file), at: map[string]int64{}}
	if err := p.value("", reflect.ValueOf(v).Elem()); err != nil {
		return nil, err
	}
	return p, p.r.End()
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (p *Places) value(path string, v reflect.Value) error {
	p.at[path] = p.r.Next()
	switch {
	case v.Addr().Type().Implements(unmarshaler):
	case v.Kind() == reflect.Struct:
		names, fields := fieldsOf(v.Type())
		return p.object(path, names, func(key string) error {
			return p.value(join(path, key), v.Field(fields[key]))
		})
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		v.Set(reflect.MakeMap(v.Type()))
		return p.object(path, nil, func(key string) error {
			item := reflect.New(v.Type().Elem()).Elem()
			err := p.value(join(path, key), item)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
			return err
		})
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return p.r.List(func(int64) error {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			i := v.Len() - 1
			return p.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		})
	}
	return p.r.Decode(v.Addr().Interface())
}

// object reads an object's members; names lists the valid ones, nil means any.
func (p *Places) object(path string, names []string, member func(key string) error) error {
	seen := map[string]bool{}
	return p.r.Object(func(key string, at int64) error {
		if names != nil && !slices.Contains(names, key) {
			return p.r.Fail(at, hintFor(key, names), "unknown member %q", key)
		}
		if seen[key] {
			return p.r.Fail(at, "keep one of them", "member %q for the second time", key)
		}
		seen[key] = true
		return member(key)
	})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fieldsOf lists the JSON names of a struct's fields, and the field of each.
func fieldsOf(t reflect.Type) (names []string, fields map[string]int) {
	fields = map[string]int{}
	for i := range t.NumField() {
		if name := jsonName(t.Field(i)); name != "" {
			names, fields[name] = append(names, name), i
		}
	}
	return names, fields
}

// jsonName returns the member that a field is read from, "" for none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || !f.IsExported() {
		return ""
	}
	if name == "" {
		return f.Name
	}
	return name
}

// hintFor names the member that was probably meant, else all there are.
func hintFor(key string, names []string) string {
	for _, n := range names {
		if strings.EqualFold(n, key) || strings.HasPrefix(n, key) || strings.HasPrefix(key, n) {
			return "write " + n
		}
	}
	return "write one of " + strings.Join(names, ", ")
}
