package sock

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"testing"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/units"
)

// TestHandlesAreChecked: a handle comes from another process; every field that
// no listener of ours writes is refused before anything is made of it.
func TestHandlesAreChecked(t *testing.T) {
	n, err := NewNet(netcfg.Socket{IfName: "lo"})
	if err != nil {
		t.Skip(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	good := invitation{Addr: ln.Addr().String(), Socks: 2, Threads: 1, Inline: 128, MinTask: 1 << 16}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*invitation){
		"inline below 0":          func(v *invitation) { v.Inline = -1 },
		"inline of -5":            func(v *invitation) { v.Inline = -5 },
		"huge inline":             func(v *invitation) { v.Inline = math.MaxInt },
		"no task":                 func(v *invitation) { v.MinTask = 0 },
		"huge task":               func(v *invitation) { v.MinTask = math.MaxInt },
		"sockets below 0":         func(v *invitation) { v.Socks = -1 },
		"too many sockets":        func(v *invitation) { v.Socks = 1 << 20 },
		"helpers below 0":         func(v *invitation) { v.Threads = -1 },
		"too many helpers":        func(v *invitation) { v.Threads = 1 << 20 },
		"sockets without helpers": func(v *invitation) { v.Threads = 0 },
		"helpers without sockets": func(v *invitation) { v.Socks = 0 },
		"no address":              func(v *invitation) { v.Addr = "" },
		"a name for an address":   func(v *invitation) { v.Addr = "localhost:80" },
		"no port":                 func(v *invitation) { v.Addr = "127.0.0.1:0" },
	} {
		v := good
		change(&v)
		if v.check() == nil {
			t.Errorf("%s: the handle passes", name)
			continue
		}
		h, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := n.Connect(context.Background(), 0, h); err == nil {
			s.Close()
			t.Errorf("%s: connected", name)
		}
	}
	for _, set := range []netcfg.Socket{{Inline: units.Some(-1)}, {Inline: units.Some(maxInline + 1)},
		{MinTask: units.Some(0)}, {MinTask: units.Some(maxTask + 1)}} {
		set.IfName = "lo"
		if _, err := NewNet(set); err == nil {
			t.Errorf("%+v is taken", set)
		}
	}
}

// FuzzHandle: no handle makes Connect, or what comes of it, crash or allocate
// beyond its bounds.
func FuzzHandle(f *testing.F) {
	f.Add([]byte(`{"Addr":"127.0.0.1:1","Socks":-1,"Threads":3,"Inline":-5,"MinTask":1}`))
	f.Add([]byte(`{"Addr":"127.0.0.1:1","Socks":0,"Threads":0,"Inline":-5,"MinTask":1}`))
	f.Add([]byte(`{"Addr":"127.0.0.1:1","Socks":2,"Threads":1,"Inline":64,"MinTask":1}`))
	f.Fuzz(func(t *testing.T, h []byte) {
		var inv invitation
		if json.Unmarshal(h, &inv) != nil {
			return
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		defer ln.Close()
		go func() { // a listener that knows whatever key the handle has
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				if _, err := inv.Key.Check(c, func() {}); err != nil {
					return
				}
			}
		}()
		inv.Addr = ln.Addr().String()
		b, err := json.Marshal(inv)
		if err != nil {
			t.Fatal(err)
		}
		n, err := NewNet(netcfg.Socket{IfName: "lo"})
		if err != nil {
			t.Skip(err)
		}
		s, err := n.Connect(context.Background(), 0, b)
		if err != nil {
			return
		}
		defer s.Close()
		mem, err := s.Register(make([]byte, 300))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Isend(transport.Buf{Mem: mem, Size: 300}, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzWire: a sender that knows the key, and says anything on its sockets, makes
// the receiver neither crash nor hang nor take more than there is room for.
func FuzzWire(f *testing.F) {
	f.Add([]byte{4, 0, 0, 0, 1, 2, 3, 4}, []byte{}, uint16(10))
	f.Add([]byte{255, 255, 255, 255}, []byte{1}, uint16(4096))
	f.Add([]byte{0, 0, 0, 128}, []byte{1}, uint16(0))
	f.Add([]byte{200, 0, 0, 0}, make([]byte, 200), uint16(200))
	f.Fuzz(func(t *testing.T, control, data []byte, room uint16) {
		n, err := NewNet(netcfg.Socket{IfName: "lo", Threads: units.Some(1), SocksPerThread: units.Some(1)})
		if err != nil {
			t.Skip(err)
		}
		l, err := n.Listen(0)
		if err != nil {
			t.Skip(err)
		}
		defer l.Close()
		inv := l.(*listener).inv
		go func() {
			for k := range inv.Socks + 1 {
				c, err := net.Dial("tcp", inv.Addr)
				if err != nil || inv.Key.Prove(c, byte(k)) != nil {
					return
				}
				says := data
				if k == inv.Socks {
					says = control
				}
				_, _ = c.Write(says)
				defer c.Close() // which ends a receive that waits for more
			}
		}()
		r, err := l.Accept(context.Background())
		if err != nil {
			t.Skip(err)
		}
		defer r.Close()
		mem, err := r.Register(make([]byte, room))
		if err != nil {
			t.Fatal(err)
		}
		req, err := r.Irecv([]transport.Buf{{Mem: mem, Size: int(room)}}, []int32{1})
		if err != nil || req == nil {
			return
		}
		for {
			done, sizes, err := req.Test()
			if err != nil {
				return
			}
			if done {
				if sizes[0] > int(room) || sizes[0] < 0 {
					t.Fatalf("%d bytes received into %d", sizes[0], room)
				}
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
}
