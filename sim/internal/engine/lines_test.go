package engine

import (
	"reflect"
	"testing"
)

// What is asked for together lies in one line of a cache.
func TestGroupLines(t *testing.T) {
	const line = 64
	of := func(v any, fields ...string) {
		t.Helper()
		ty := reflect.TypeOf(v)
		if ty.Size()%line != 0 {
			t.Errorf("%v has %d bytes, which is no whole number of lines", ty, ty.Size())
		}
		first := uintptr(0)
		for i, name := range fields {
			f, ok := ty.FieldByName(name)
			if !ok {
				t.Fatalf("%v has no %s", ty, name)
			}
			if i == 0 {
				first = f.Offset / line
			}
			if last := (f.Offset + f.Type.Size() - 1) / line; f.Offset/line != first || last != first {
				t.Errorf("%v: %s is in lines %d to %d, %s in line %d", ty, name, f.Offset/line, last,
					fields[0], first)
			}
		}
	}
	of(Conn{}, "Snd", "Rcv", "Net", "posted", "Taken", "sent", "credited", "tails", "Depth")
	of(Group{}, "state", "known", "flow", "Sm", "slice", "Free", "wake", "met", "metAt", "Route")
	of(Group{}, "Since", "Bytes", "size", "left", "peers")
	of(Group{}, "cur", "last", "Plan", "Job", "taken")
	of(Group{}, "pass", "pack")
	of(Group{}, "sized", "load", "bound")
	g, _ := reflect.TypeFor[Group]().FieldByName("Op")
	op := g.Type
	do, _ := op.FieldByName("Do")
	to, _ := op.FieldByName("To")
	if at := g.Offset + do.Offset; at/line != (g.Offset+to.Offset+to.Type.Size()-1)/line {
		t.Errorf("Do and To of a group's op are in two lines")
	}
}
