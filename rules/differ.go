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
		out = append(out, within(x, y, Rule{stage, f.Index})...)
	}
	return out
}

// within lists what of a rule, or of the fields of a stage and of RCCL's own in it, differs.
func within(x, y reflect.Value, r Rule) []Rule {
	v, w := x.FieldByIndex(r.at), y.FieldByIndex(r.at)
	if len(r.at) > 1 && !strings.HasPrefix(v.Type().Name(), "AMD") || v.Kind() != reflect.Struct {
		if same(v, w) {
			return nil
		}
		return []Rule{r}
	}
	var out []Rule
	for i := range v.NumField() {
		name := r.Name
		if f := v.Type().Field(i); !f.Anonymous {
			name += "." + f.Name
		}
		out = append(out, within(x, y, Rule{name, append(append([]int(nil), r.at...), i)})...)
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

// Changed lists the releases that changed the rule, after one and up to another of the same library.
func (r Rule) Changed(from, to *Ruleset) []Release {
	if to.Release.Compare(from.Release) < 0 {
		from, to = to, from
	}
	var out []Release
	var last *Ruleset
	for _, e := range releases(from.Library) {
		if e.Compare(from.Release) < 0 || e.Compare(to.Release) > 0 {
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
