package verbs

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func v4(a, b, c, d byte) GID { return GID{10: 0xff, 11: 0xff, 12: a, 13: b, 14: c, 15: d} }
func v6(text string) GID     { return netip.MustParseAddr(text).As16() }

// TestRoCEAddress follows NCCL's walk through a table of addresses
// (net_ib.cc:428): entry 0 is kept until one is better.
func TestRoCEAddress(t *testing.T) {
	linkLocal, global := v6("fe80::1234"), v6("2001:db8::7")
	usual := []gidEntry{{linkLocal, 1}, {linkLocal, 2}, {v4(10, 0, 0, 1), 1}, {v4(10, 0, 0, 1), 2}}
	for _, c := range []struct {
		name  string
		table []gidEntry
		wish  gidWish
		want  int
	}{
		{"IPv4 and version 2", usual, gidWish{version: 2}, 3},
		{"IPv4 and version 1", usual, gidWish{version: 1}, 2},
		{"IPv6 is link-local only: the first stands", usual, gidWish{ipv6: true, version: 2}, 0},
		{"IPv6 that reaches further", append(usual[:4:4], gidEntry{global, 1}, gidEntry{global, 2}),
			gidWish{ipv6: true, version: 2}, 5},
		{"of two addresses the first of the version", append(usual[:4:4], gidEntry{v4(10, 1, 0, 1), 2}),
			gidWish{version: 2}, 3},
		{"a range", append(usual[:4:4], gidEntry{v4(10, 1, 0, 1), 2}),
			gidWish{version: 2, within: addressRange("10.1.0.0/16", false)}, 4},
		{"a range that holds none", usual, gidWish{version: 2, within: addressRange("192.168.0.0/16", false)},
			0},
		{"a range of another family is no range", usual,
			gidWish{version: 2, within: addressRange("2001:db8::/32", false)}, 3},
		{"holes", []gidEntry{{}, {}, {v4(10, 0, 0, 1), 2}, {}}, gidWish{version: 2}, 2},
		{"nothing", nil, gidWish{version: 2}, 0},
	} {
		if got := c.wish.pick(c.table); got != c.want {
			t.Errorf("%s: entry %d, want %d", c.name, got, c.want)
		}
	}
}

// TestRoutes are the address vectors of the three ways to a port.
func TestRoutes(t *testing.T) {
	near := End{Port: Port{Num: 2}, GID: v6("fe80:0:0:1::5"), GIDIndex: 3}
	far := v6("fe80:0:0:1::6")
	other := v6("fe80:0:77:2::6") // subnet 2, routable address 0x77
	for _, c := range []struct {
		name string
		to   Address
		want ahAttr
	}{
		{"RoCE", Address{Layer: Ethernet, GID: far}, ahAttr{isGlobal: 1, sl: 4, portNum: 2,
			grh: globalRoute{dgid: far, sgidIndex: 3, hopLimit: 255, trafficClass: 9}}},
		{"one InfiniBand subnet", Address{Layer: InfiniBand, LID: 17, GID: far},
			ahAttr{dlid: 17, sl: 4, portNum: 2}},
		{"another subnet", Address{Layer: InfiniBand, LID: 17, GID: other}, ahAttr{isGlobal: 1, dlid: 0x77,
			sl: 4, portNum: 2,
			grh: globalRoute{dgid: other, sgidIndex: 3, hopLimit: 255}}},
		{"another subnet without routable address", Address{Layer: InfiniBand, LID: 17,
			GID: v6("fe80:0:0:2::6")}, ahAttr{isGlobal: 1, dlid: 17, sl: 4, portNum: 2,
			grh: globalRoute{dgid: v6("fe80:0:0:2::6"), sgidIndex: 3, hopLimit: 255}}},
	} {
		if got := near.route(&c.to, 4, 9); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestRegistrationsAreShared: whatever is registered lies in its registration;
// what fits into an earlier one makes none; when all is dropped nothing is
// left.
func TestRegistrationsAreShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := map[*MR]bool{}
		c := mrCache{page: 4096, register: func(addr uintptr, size int) (*MR, error) {
			m := &MR{Addr: addr, Len: size}
			live[m] = true
			return m, nil
		}, release: func(m *MR) error {
			if !live[m] {
				t.Fatal("released twice")
			}
			delete(live, m)
			return nil
		}}
		var held []*MR
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "drop") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				if err := c.drop(held[i]); err != nil {
					t.Fatal(err)
				}
				held = append(held[:i], held[i+1:]...)
				continue
			}
			addr := uintptr(rapid.IntRange(1, 20*4096).Draw(t, "addr"))
			size := rapid.IntRange(1, 5*4096).Draw(t, "size")
			before := len(live)
			m, err := c.take(addr, size)
			if err != nil {
				t.Fatal(err)
			}
			if m.Addr%4096 != 0 || m.Len%4096 != 0 || addr < m.Addr || addr+uintptr(size) > m.Addr+
				uintptr(m.Len) {
				t.Fatalf("%d bytes at %d are not within %d pages at %d", size, addr, m.Len/4096, m.Addr)
			}
			again, err := c.take(addr, size)
			if err != nil || again != m && len(live) != before {
				t.Fatalf("the same memory is registered twice: %v", err)
			}
			held = append(held, m, again)
		}
		for _, m := range held {
			if !live[m] {
				t.Fatal("a registration in use was ended")
			}
			if err := c.drop(m); err != nil {
				t.Fatal(err)
			}
		}
		if len(live) > 0 || len(c.slots) > 0 {
			t.Fatalf("%d registrations are left", len(live))
		}
	})
}

// TestEvents: fatal ones end the connection or device that they name, and no
// other; the rest is reported along with later errors (net_ib.cc:206).
func TestEvents(t *testing.T) {
	var w watch
	var a, b Fault
	w.follow(100, &a)
	w.follow(200, &b)
	w.book("mlx5_0", eventQPAccess, 100, "local access violation work queue error")
	if err := a.Get(); err == nil || !strings.Contains(err.Error(),
		"local access violation work queue error on mlx5_0") {
		t.Errorf("the QP's connection has %v", err)
	}
	if b.Get() != nil || w.dev.Get() != nil {
		t.Error("an event of one QP ends others")
	}
	// established, port active, port error, SRQ limit, GID change
	for _, kind := range []uint32{4, 9, 10, 15, 18} {
		w.book("mlx5_0", kind, 200, "port error")
	}
	if b.Get() != nil || w.dev.Get() != nil || w.notice() != "port error" {
		t.Errorf("events that end nothing: %v, %v, %q", b.Get(), w.dev.Get(), w.notice())
	}
	w.follow(200, nil)
	w.book("mlx5_0", eventCQ, 200, "CQ error") // of a queue that is destroyed
	w.book("mlx5_0", eventDevice, 0, "local catastrophic error")
	var e *Error
	if b.Get() != nil || !errors.As(w.dev.Get(), &e) || e.Device != "mlx5_0" {
		t.Errorf("the device has %v", w.dev.Get())
	}
}
