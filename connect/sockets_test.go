package connect_test

import (
	"testing"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Sockets and helpers of a connection as NCCL counts them (net_socket.cc:289).
func TestSocketSplit(t *testing.T) {
	none := units.Opt[int]{}
	for _, x := range []struct {
		vendor           uint16
		threads, each    units.Opt[int]
		sockets, helpers int
	}{
		{0, none, none, 0, 0},
		{0x8086, none, none, 0, 0},
		{connect.VendorAWS, none, none, 16, 2},
		{connect.VendorGoogle, none, none, 4, 4},
		{connect.VendorGoogle, units.Some(1), none, 1, 1},
		{connect.VendorAWS, none, units.Some(1), 2, 2},
		{0, units.Some(4), none, 4, 4},
		{0, none, units.Some(4), 0, 0}, // no thread that could serve them
		{0, units.Some(100), units.Some(1), 16, 16},
		{0, units.Some(16), units.Some(8), 64, 16},
		{0, units.Some(5), units.Some(20), 60, 5},
		{connect.VendorAWS, units.Some(0), none, 0, 0},
		{0, units.Some(-3), units.Some(-3), 0, 0},
		{0, units.Some(-3), units.Some(4), 0, 0},
		{0, units.Some(4), units.Some(-3), 0, 0},
		{0, units.Some(4), units.Some(0), 0, 0},
	} {
		s, h := connect.SocketSplit(x.vendor, x.threads, x.each)
		if s != x.sockets || h != x.helpers {
			t.Errorf("vendor %#x, threads %v, sockets of each %v: %d sockets, %d helpers; want %d, %d",
				x.vendor, x.threads, x.each, s, h, x.sockets, x.helpers)
		}
	}
}
