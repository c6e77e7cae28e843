package perftest

import (
	"strings"
	"testing"
)

// TestWords: what is no test is the other side.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		args  string
		serve bool
		host  string
		tests string
		wrong bool
	}{
		{"", false, "", "write read send nccl", false}, {"nccl write", false, "", "nccl write", false},
		{"node1", false, "node1:18515", "write read send nccl", false}, {"read 10.0.0.1:99 nccl", false,
			"10.0.0.1:99", "read nccl", false},
		{"fe80::1", false, "[fe80::1]:18515", "write read send nccl", false},
		{"", true, "", "write read send nccl", false},
		{"node1 node2", false, "", "", true}, {"node1", true, "", "", true},
	} {
		r := Request{Words: strings.Fields(c.args), Size: "8", Iters: 5, QPs: 1, Depth: 1, TCP: 18515,
			Serve: c.serve}
		p, err := r.Plan()
		if err != nil {
			p = &Plan{}
		}
		if (err != nil) != c.wrong || p.Host != c.host || strings.Join(p.Tests, " ") != c.tests {
			t.Errorf("%q: host %q, tests %q, %v", c.args, p.Host, p.Tests, err)
		}
	}
}

// TestBoundsOfSettings: the least and the most of each setting are taken, one less or more is not.
func TestBoundsOfSettings(t *testing.T) {
	for _, c := range []struct {
		name        string
		of          func(*Request) *int
		least, most int
	}{
		{"Iters", func(r *Request) *int { return &r.Iters }, 5, 1 << 30},
		{"QPs", func(r *Request) *int { return &r.QPs }, 1, 128},
		{"Seconds", func(r *Request) *int { return &r.Seconds }, 0, 1 << 30},
		{"Depth", func(r *Request) *int { return &r.Depth }, 1, 512},
		{"SL", func(r *Request) *int { return &r.SL }, -1, 15},
		{"TrafficClass", func(r *Request) *int { return &r.TrafficClass }, -1, 255},
		{"QPTimeout", func(r *Request) *int { return &r.QPTimeout }, -1, 31},
		{"TCP", func(r *Request) *int { return &r.TCP }, 1, 65535},
	} {
		for _, x := range []struct {
			value int
			ok    bool
		}{{c.least, true}, {c.most, true}, {c.least - 1, c.least < 0}, {c.most + 1, c.most == 1<<30}} {
			r := Request{Size: "8", Iters: 5, QPs: 1, Depth: 1, TCP: 18515}
			*c.of(&r) = x.value
			if _, err := r.Plan(); (err == nil) != x.ok || err != nil && !strings.Contains(err.Error(),
				c.name) {
				t.Errorf("%s %d: %v, want it taken: %t", c.name, x.value, err, x.ok)
			}
		}
	}
}
