package replay

import "testing"

// TestPathLimit: the host is the limit where it is the longest part of the critical path, near it where it
// has more than a quarter of the iteration.
func TestPathLimit(t *testing.T) {
	for _, c := range []struct {
		path []Share
		want string
	}{
		{nil, LimitGPU}, {[]Share{{What: "compute", Us: 100}}, LimitGPU},
		{[]Share{{What: "host", Us: 1}, {What: "compute", Us: 1}}, LimitHost},
		{[]Share{{What: "compute", Us: 75}, {What: "host", Us: 25}}, LimitGPU},
		{[]Share{{What: "compute", Us: 74}, {What: "host", Us: 25.5}}, LimitNear},
		{[]Share{{What: "compute", Us: 60}, {What: "tp", Us: 40}}, LimitGPU},
	} {
		if got := pathLimit(c.path, 100); got != c.want {
			t.Errorf("%v: %s, want %s", c.path, got, c.want)
		}
	}
}
