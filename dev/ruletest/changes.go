package ruletest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/simccl/simccl/units"
)

// Changes are the fields in which two values of one type differ, one a line: "CC.Window: 0 → 64000". Of a
// list that grew or shrank, elements are there or not. Fields that a package keeps to itself do not count.
func Changes(was, is any) string {
	var b strings.Builder
	changes(&b, "", reflect.ValueOf(was), reflect.ValueOf(is))
	return b.String()
}

func changes(b *strings.Builder, name string, was, is reflect.Value) {
	switch {
	case was.Kind() == reflect.Pointer && !was.IsNil() && !is.IsNil():
		changes(b, name, was.Elem(), is.Elem())
	case was.Kind() == reflect.Struct:
		for i := range was.NumField() {
			f := was.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			inner := strings.TrimPrefix(name+"."+f.Name, ".")
			if f.Anonymous {
				inner = name
			}
			changes(b, inner, was.Field(i), is.Field(i))
		}
	case was.Kind() == reflect.Slice:
		for i := range max(was.Len(), is.Len()) {
			inner := fmt.Sprintf("%s[%d]", name, i)
			switch {
			case i >= was.Len():
				fmt.Fprintf(b, "%s: %s\n", inner, shown(is.Index(i)))
			case i >= is.Len():
				fmt.Fprintf(b, "%s: removed\n", inner)
			default:
				changes(b, inner, was.Index(i), is.Index(i))
			}
		}
	default:
		if x, y := shown(was), shown(is); x != y {
			fmt.Fprintf(b, "%s: %s → %s\n", name, x, y)
		}
	}
}

// shown is a value as a line has it, that of a pointer where there is one.
func shown(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return shown(v.Elem())
	}
	if v.Kind() == reflect.Struct || v.Kind() == reflect.Pointer {
		return fmt.Sprintf("%+v", v)
	}
	return fmt.Sprint(v)
}

// Set sets a field of what of points at, by its path: "Buffer.Bytes" to "65536", a time to "20us".
func Set(of any, path, value string) error {
	v := reflect.ValueOf(of).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if v = v.FieldByName(name); !v.IsValid() {
			return fmt.Errorf("no field %s", name)
		}
	}
	if v.Type() == reflect.TypeFor[units.Time]() {
		d, err := time.ParseDuration(value)
		v.SetInt(int64(d) * int64(units.Nanosecond))
		return err
	}
	switch {
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(value)
		v.SetBool(b)
		return err
	case v.CanFloat():
		f, err := strconv.ParseFloat(value, 64)
		v.SetFloat(f)
		return err
	case v.CanUint():
		n, err := strconv.ParseUint(value, 10, 64)
		v.SetUint(n)
		return err
	case v.CanInt():
		n, err := strconv.ParseInt(value, 10, 64)
		v.SetInt(n)
		return err
	}
	return fmt.Errorf("%s is a %v, and no number", path, v.Type())
}
