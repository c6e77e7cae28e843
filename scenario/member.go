package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// setMember stores a JSON value at a path of the struct that to points to. A list may grow by
// one element. Members named in not are no steps of a path.
func setMember(to any, path string, value json.RawMessage, not ...string) error {
	v := reflect.ValueOf(to).Elem()
	rest := path
	for rest != "" {
		var step string
		step, rest = cutStep(rest)
		switch {
		case v.Kind() == reflect.Struct:
			f, ok := member(v, step)
			if !ok || slices.Contains(not, step) {
				return fmt.Errorf("%s: a scenario has no member %q", path, step)
			}
			v = f
		case v.Kind() == reflect.Slice:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i > v.Len() {
				return fmt.Errorf("%s: index %q of a list of %d", path, step, v.Len())
			}
			if i == v.Len() {
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			}
			v = v.Index(i)
		case v.Kind() == reflect.Map && rest == "":
			item := reflect.New(v.Type().Elem())
			if err := strict(value, item.Interface()); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(reflect.ValueOf(step), item.Elem())
			return nil
		default:
			return fmt.Errorf("%s: nothing lies below %q", path, step)
		}
	}
	fresh := reflect.New(v.Type())
	if err := strict(value, fresh.Interface()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	v.Set(fresh.Elem())
	return nil
}

// cutStep takes the first step off a path: "nodes[0].count" gives "nodes" and
// "[0].count", that gives "0" and "count". Names of variables have no dots.
func cutStep(path string) (step, rest string) {
	if strings.HasPrefix(path, "[") {
		step, rest, _ = strings.Cut(path[1:], "]")
		return step, strings.TrimPrefix(rest, ".")
	}
	i := strings.IndexAny(path, ".[")
	switch {
	case i < 0:
		return path, ""
	case path[i] == '.':
		return path[:i], path[i+1:]
	}
	return path[:i], path[i:]
}

// member finds a struct's field by its JSON name.
func member(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func strict(data []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(to)
}
