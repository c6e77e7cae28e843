package rules

import (
	"reflect"
	"strings"
)

// Rule is one rule of a Ruleset, by its field: "Tuning.BaseLat".
type Rule struct {
	Name string
	at   []int
}

// Differing lists the rules in which two releases differ, in the order of the stages; not
// those of symmetric kernels and of the log.
func Differing(a, b *Ruleset) []Rule {
	var out []Rule
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for _, stage := range []string{"MaxChannels", "Topo", "Search", "Connect", "Tuning", "Plan"} {
		f, _ := x.Type().FieldByName(stage)
		if f.Type.Kind() != reflect.Struct {
			if !same(x.FieldByIndex(f.Index), y.FieldByIndex(f.Index)) {
				out = append(out, Rule{stage, f.Index})
			}
			continue
		}
		for i := range f.Type.NumField() {
			at := append(append([]int(nil), f.Index...), i)
			if !same(x.FieldByIndex(at), y.FieldByIndex(at)) {
				out = append(out, Rule{stage + "." + f.Type.Field(i).Name, at})
			}
		}
	}
	return out
}

// same compares values, and functions by which they are.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Func {
		return a.Pointer() == b.Pointer()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// Take gives dst the rule that src has.
func (r Rule) Take(dst, src *Ruleset) {
	reflect.ValueOf(dst).Elem().FieldByIndex(r.at).Set(reflect.ValueOf(src).Elem().FieldByIndex(r.at))
}

// Changed lists the releases that changed the rule, after one release and up to another.
func (r Rule) Changed(from, to Release) []Release {
	if to.Compare(from) < 0 {
		from, to = to, from
	}
	var out []Release
	var last *Ruleset
	for _, e := range table() {
		if e.Compare(from) < 0 || e.Compare(to) > 0 {
			continue
		}
		now := e.rules()
		if last != nil && !same(reflect.ValueOf(last).Elem().FieldByIndex(r.at),
			reflect.ValueOf(now).Elem().FieldByIndex(r.at)) {
			out = append(out, e.Release)
		}
		last = now
	}
	return out
}

// Planning reports a rule of which only the plans depend, and with them times: no choice does.
func (r Rule) Planning() bool { return strings.HasPrefix(r.Name, "Plan.") }
