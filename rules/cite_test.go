package rules

import (
	"strconv"
	"strings"
	"testing"
)

// TestEveryPlaceHasItsLines: every condition has a file and, of every release, a line or
// its absence, and Cite says so. A condition comes or goes once.
func TestEveryPlaceHasItsLines(t *testing.T) {
	known := Known()
	for p := AtNone + 1; p < numPlaces; p++ {
		c := &citations[p]
		if len(c.lines) != len(known) || !strings.Contains(c.file, ".c") {
			t.Errorf("place %d: %d lines of %q for %d releases", p, len(c.lines), c.file, len(known))
			continue
		}
		changes, lines := 0, 0
		for i, n := range c.lines {
			if n != absent {
				lines++
			}
			if i > 0 && (n == absent) != (c.lines[i-1] == absent) {
				changes++
			}
			r, err := For(known[i].String())
			if err != nil {
				t.Fatal(err)
			}
			want := c.file + ":" + strconv.Itoa(int(n)) + " of " + known[i].String()
			if n == absent {
				want = ""
			}
			if got := r.Cite(p); got != want {
				t.Errorf("place %d of %s: %q, want %q", p, known[i], got, want)
			}
		}
		if lines == 0 || changes > 1 {
			t.Errorf("place %d: %d lines, and %d times it comes or goes: %v", p, lines, changes, c.lines)
		}
	}
}

// TestCite: a condition is cited from the release of the rules, and not at all where that
// lacks it, for none, and of RCCL where its line is not listed.
func TestCite(t *testing.T) {
	for _, c := range []struct {
		version string
		at      Place
		want    string
	}{
		{"2.28.9", AtNVLSSimple, "graph/tuning.cc:280 of 2.28.9"},
		{"2.26.2", AtNVLSSimple, "graph/tuning.cc:246 of 2.26.2"},
		{"2.30.7", AtSHMDisable, "transport/shm.cc:66 of 2.30.7"},
		{"2.21.5", AtBroadcastRing, "graph/tuning.cc:166 of 2.21.5"},
		{"2.21.5", AtReduceRing, "graph/tuning.cc:167 of 2.21.5"},
		{"2.21.5", AtPATNodes, ""}, {"2.29.2", AtPeerMinimum, ""}, {"2.28.9", AtNone, ""},
		{"2.28.9", numPlaces, ""}, {"rccl-2.30.4", AtP2PLevel, ""},
	} {
		r, err := For(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Cite(c.at); got != c.want {
			t.Errorf("%s: %q, want %q", c.version, got, c.want)
		}
	}
}

// TestRCCLsPlacesHaveLines: what only RCCL decides has a line of 2.30.4 and, where 2.28.3 has it, of that;
// NCCL's releases cite none of it.
func TestRCCLsPlacesHaveLines(t *testing.T) {
	newest := DefaultRCCL()
	for p := AtPATWindow; p < endPlaces; p++ {
		if at := newest.Cite(p); !strings.HasSuffix(at, " of RCCL 2.30.4") || Default().Cite(p) != "" {
			t.Errorf("place %d: %q, and of NCCL %q", p, at, Default().Cite(p))
		}
	}
	old, err := For("rccl-2.28.3")
	if err != nil {
		t.Fatal(err)
	}
	if got := old.Cite(AtRanges); got != "rccl_wrap.cc:107 of RCCL 2.28.3" || old.Cite(AtDDA) != "" {
		t.Errorf("%q, %q", got, old.Cite(AtDDA))
	}
}
