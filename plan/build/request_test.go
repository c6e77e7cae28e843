package build_test

import (
	"errors"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
)

// TestRequestsHaveLimits: each member to its limit is planned, and refused beyond by its name; what no kernel
// does has a type of its own.
func TestRequestsHaveLimits(t *testing.T) {
	type layout = connect.Layout
	type request = plan.Request
	for i, c := range []struct {
		field string // none: it is planned; "?": it is not supported
		set   func(*layout, *request)
	}{
		{"", func(*layout, *request) {}},
		{"Comm", func(c *layout, _ *request) { c.NRanks = 0 }},
		{"Comm", func(c *layout, _ *request) { c.Rules = nil }},
		{"?", func(_ *layout, r *request) { r.Way = "x" }},
		{"Func", func(_ *layout, r *request) { r.Func = 99 }},
		{"Type", func(_ *layout, r *request) { r.Type = 99 }},
		{"", func(_ *layout, r *request) { r.Count = 0 }},
		{"Count", func(_ *layout, r *request) { r.Count = -1 }},
		{"Count", func(_ *layout, r *request) { r.Count = 1 << 62 }},
		{"", func(_ *layout, r *request) { r.Func, r.Root = coll.Broadcast, 3 }},
		{"Root", func(_ *layout, r *request) { r.Func, r.Root = coll.Broadcast, 4 }},
		{"Root", func(_ *layout, r *request) { r.Func, r.Root = coll.Broadcast, -1 }},
		{"", func(_ *layout, r *request) { r.Func, r.Root, r.Peer = coll.Send, 3, 0 }},
		{"", func(_ *layout, r *request) { r.Func, r.Root, r.Peer = coll.Send, 0, 3 }},
		{"Peer", func(_ *layout, r *request) { r.Func, r.Root, r.Peer = coll.Send, 0, 4 }},
		{"Peer", func(_ *layout, r *request) { r.Func, r.Root, r.Peer = coll.Send, 4, 0 }},
		{"Peer", func(_ *layout, r *request) { r.Func, r.Root, r.Peer = coll.Send, -1, 0 }},
		{"Peer", func(_ *layout, r *request) { r.Func, r.Root, r.Peer = coll.Send, 0, -1 }},
		{"Op", func(_ *layout, r *request) { r.Op = 99 }},
		{"", func(_ *layout, r *request) { r.Func, r.Op = coll.AllGather, 99 }},
		{"Algo", func(_ *layout, r *request) { r.Algo = 99 }},
		{"Proto", func(_ *layout, r *request) { r.Proto = 99 }},
		{"Channels", func(_ *layout, r *request) { r.Channels = 0 }},
		{"", func(_ *layout, r *request) { r.Warps = 1 }},
		{"", func(_ *layout, r *request) { r.Warps = 20 }},
		{"Warps", func(_ *layout, r *request) { r.Warps = 0 }},
		{"Warps", func(_ *layout, r *request) { r.Warps = 21 }},
		{"?", func(_ *layout, r *request) { r.Algo, r.Proto = coll.NVLS, coll.LL }},
	} {
		l := draw.Plain(2, 2, 1)
		r := plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: 1024, Algo: coll.Ring,
			Proto: coll.Simple, Channels: 1, Warps: 16}
		c.set(l, &r)
		_, err := build.Plan(l, r)
		bad, lacks := (*plan.RequestError)(nil), (*plan.UnsupportedError)(nil)
		switch {
		case errors.As(err, &bad):
			if bad.Field != c.field {
				t.Errorf("%d: %v, want %s", i, err, c.field)
			}
		case errors.As(err, &lacks):
			if c.field != "?" {
				t.Errorf("%d: %v, want %q", i, err, c.field)
			}
		case err != nil || c.field != "":
			t.Errorf("%d: %v, want %q", i, err, c.field)
		}
	}
}
