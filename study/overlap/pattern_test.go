package overlap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestPatterns: each of the script that measures, with what rank r sends there
// among four.
func TestPatterns(t *testing.T) {
	for text, want := range map[string]string{
		"one way 0>1":              "0>1",
		"both ways 0<>1":           "0>1 1>0",
		"one way 0>1 2>3":          "0>1 2>3",
		"pairs 0<>1 2<>3":          "0>1 1>0 2>3 3>2",
		"ring":                     "0>1 1>2 2>3 3>0",
		"ring both ways":           "0>1 0>3 1>0 1>2 2>1 2>3 3>0 3>2",
		"shift 2":                  "0>2 1>3 2>0 3>1",
		"pipeline 0>1>2>3 at once": "0>1 1>2 2>3",
		"all pairs":                "0>1 0>2 0>3 1>0 1>2 1>3 2>0 2>1 2>3 3>0 3>1 3>2",
		"fan out 0>all":            "0>1 0>2 0>3",
		"fan in all>0":             "1>0 2>0 3>0",
		"fan in all>3":             "0>3 1>3 2>3",
	} {
		list, err := pattern(strings.Fields(text), 4)
		var got []string
		for _, m := range list {
			got = append(got, fmt.Sprintf("%d>%d", m[0], m[1]))
		}
		if slices.Sort(got); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"butterfly":      `"butterfly" is not known in a pattern; write 0>1`,
		"ring of 0>1":    `"ring" is not known in a pattern`,
		"shift 4":        "shift 4: from 1 to 3",
		"shift x":        "shift x: from 1 to 3",
		"0>7":            "7: ranks are from 0 to 3",
		"fan in all>all": "all: ranks are from 0 to 3",
		"one way":        `"one way" is no pattern`,
		"0>1>":           `"0>1>" is not known`,
	} {
		if _, err := pattern(strings.Fields(text), 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if list, err := pattern([]string{"14>2", "15>0"}, 16); err != nil || len(list) != 2 ||
		list[0] != [2]int32{14, 2} {
		t.Errorf("ranks of two digits: %v, %v", list, err)
	}
}

// TestNumericLabels: numbers of bytes and calls from 0 to 2^40, without anything else.
func TestNumericLabels(t *testing.T) {
	labels := []string{"0", "1099511627776", "-1", "1099511627777", "x", ""}
	if got, err := ints(labels, 1, 0); err != nil || got[0] != 1<<40 || got[1] != 0 {
		t.Errorf("%v, %v", got, err)
	}
	for bad := range labels[2:] {
		if got, err := ints(labels, 2+bad); err == nil {
			t.Errorf("%q: %v", labels[2+bad], got)
		}
	}
}
