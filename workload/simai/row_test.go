package simai

import (
	"strings"
	"testing"
)

// TestRowsHaveLimits: a number to its limit is taken, None is none, and what is beyond is refused at its
// column; a time that is none, or not one of a call, is left out, as logs have any text there.
func TestRowsHaveLimits(t *testing.T) {
	usual := []string{"CommType.all_reduce", "CommGroup.tp_group", "4", "1024", "forward", "None", "None",
		"additional", "12.5", "0", "0", "None"}
	for _, c := range []struct {
		field int
		text  string
		want  string // of the error
		is    func(AICBRow) bool
	}{
		{2, "16777216", "", func(r AICBRow) bool { return r.Size == 1<<24 }},
		{2, "16777217", `"16777217" is no size of a group`, nil},
		{2, "-1", "is no size of a group", nil},
		{3, "1125899906842624", "", func(r AICBRow) bool { return r.Bytes == 1<<50 }},
		{3, "1125899906842625", "is no size in bytes", nil},
		{5, "16777216", "", func(r AICBRow) bool { return r.Dst == 1<<24 && r.Src == -1 }},
		{5, "16777217", "is no rank", nil},
		{6, "3", "", func(r AICBRow) bool { return r.Src == 3 && r.Dst == -1 }},
		{6, "16777217", "is no rank", nil},
		{11, "1048576", "", func(r AICBRow) bool { return r.Count == 1<<20 }},
		{11, "1048577", "is no count", nil},
		{11, "", "", func(r AICBRow) bool { return r.Count == 1 && r.Elapsed == 12.5 }},
		{8, "999999999", "", func(r AICBRow) bool { return r.Elapsed == 999999999 }},
		{8, "1e9", "", func(r AICBRow) bool { return r.Elapsed == 0 }},
		{8, "0", "", func(r AICBRow) bool { return r.Elapsed == 0 }},
		{8, "-3", "", func(r AICBRow) bool { return r.Elapsed == 0 }},
		{8, "fast", "", func(r AICBRow) bool { return r.Elapsed == 0 }},
		{7, "a,b,c", "", func(r AICBRow) bool { return r.Elapsed == 12.5 && r.Stage == "forward" }},
	} {
		fields := append([]string(nil), usual...)
		fields[c.field] = c.text
		r, err := row(strings.Join(fields, ","), "f", 9)
		switch {
		case c.want == "":
			if err != nil || !c.is(r) || r.Line != 9 || r.Comm != "all_reduce" || r.Group != "tp_group" {
				t.Errorf("field %d %q: %+v, %v", c.field, c.text, r, err)
			}
		case err == nil || !strings.Contains(err.Error(), "f:9:") || !strings.Contains(err.Error(), c.want):
			t.Errorf("field %d %q: %v, want %q", c.field, c.text, err, c.want)
		}
	}
	if _, err := row(strings.Join(usual[:11], ","), "f", 9); err == nil ||
		!strings.Contains(err.Error(), "11 fields, 12 are expected") {
		t.Error(err)
	}
}
