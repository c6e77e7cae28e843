package draw

import (
	"fmt"
	"reflect"
)

// Fill sets every exported field of a value, those of what it points at and of lists and maps included: to 1,
// "x" and true.
func Fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				Fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			Fill(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		Fill(key)
		Fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	}
}

// Shared names the lists, maps and pointers that two values of one type have in common.
func Shared(name string, a, b reflect.Value) (names []string) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				names = append(names, Shared(name+"."+f.Name, a.Field(i), b.Field(i))...)
			}
		}
		return names
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if a.IsNil() || b.IsNil() {
			return nil
		}
		if a.Pointer() == b.Pointer() {
			return []string{name}
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		return Shared(name, a.Elem(), b.Elem())
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			names = append(names, Shared(fmt.Sprintf("%s[%d]", name, i), a.Index(i), b.Index(i))...)
		}
	}
	return names
}
