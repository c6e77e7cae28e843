package logcheck

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/study/ncclog"
)

// TestLinesAreMatchedByKey: equal lines first, in their order, then those with an equal key, and each once;
// what is left of either is without a match.
func TestLinesAreMatchedByKey(t *testing.T) {
	for i, c := range []struct {
		logged, ours []string
		want         string
	}{
		{nil, nil, "[]"}, {nil, []string{"a"}, "[{-1 0}]"}, {[]string{"a"}, nil, "[{0 -1}]"},
		{[]string{"a", "b"}, []string{"b", "a"}, "[{0 1} {1 0}]"},
		{[]string{"a", "a", "a"}, []string{"a", "a"}, "[{0 0} {1 1} {2 -1}]"},
		{[]string{"a"}, []string{"a", "a"}, "[{0 0} {-1 1}]"},
	} {
		var logged []ncclog.Text
		for _, text := range c.logged {
			logged = append(logged, ncclog.Text{Text: text})
		}
		if got := fmt.Sprint(byKey(logged, c.ours)); got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

// TestSpeedsOfLinks: the widest usual link of one generation first, then narrower ones, then sums of ports;
// what is none of these has no speed.
func TestSpeedsOfLinks(t *testing.T) {
	for _, l := range lanes {
		for _, w := range []int{16, 1} {
			if text, width, ok := speed(l.bw * float64(w) / 16); !ok || text == "" || width < 1 {
				t.Errorf("%s x%d: %q x%d", l.text, w, text, width)
			}
		}
		if text, width, ok := speed(l.bw + 0.05); !ok || text != l.text || width != 16 {
			t.Errorf("%s: %q x%d", l.text, text, width)
		}
	}
	for _, bw := range []float64{0, -1} {
		if text, _, ok := speed(bw); ok {
			t.Errorf("%g: %q", bw, text)
		}
	}
}
