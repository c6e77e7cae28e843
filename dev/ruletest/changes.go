package ruletest

import (
	"fmt"
	"reflect"
	"strings"
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
				fmt.Fprintf(b, "%s: gone\n", inner)
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
