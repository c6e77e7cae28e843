package verbs

import "testing"

// TestRatesOfPorts: lanes by the lowest bit of the width, each with the rate of the lowest bit of the speed,
// the newer field before the old one (net_ib.cc:542); what has no bit that is known is the last of the table.
func TestRatesOfPorts(t *testing.T) {
	for _, c := range []struct {
		width, speed uint8
		newer        uint32
		want         int
	}{{1, 1, 0, 2_500}, {2, 1, 0, 10_000}, {2, 2, 0, 20_000}, {2, 4, 0, 40_000}, {2, 8, 0, 40_000},
		{2, 16, 0, 56_000}, {2, 32, 0, 100_000}, {2, 64, 0, 200_000}, {2, 128, 0, 400_000},
		{2, 128, 256, 800_000}, {4, 32, 0, 200_000}, {8, 32, 0, 300_000}, {16, 32, 0, 50_000},
		{0, 32, 0, 50_000}, {2, 0, 0, 800_000}, {3, 48, 0, 14_000}} {
		a := portAttr{activeWidth: c.width, activeSpeed: c.speed, activeSpeedEx: c.newer}
		if got := a.mbps(); got != c.want {
			t.Errorf("width %d, speed %d or %d: %d Mbit/s, want %d", c.width, c.speed, c.newer, got, c.want)
		}
	}
}

// TestMTUCodes are those of enum ibv_mtu: the largest that is not above the size, 256 bytes at least.
func TestMTUCodes(t *testing.T) {
	for bytes, want := range map[int]uint32{128: 1, 256: 1, 511: 1, 512: 2, 1024: 3, 1500: 3, 2048: 4,
		4095: 4, 4096: 5, 8192: 5} {
		if got := mtuCode(bytes); got != want {
			t.Errorf("%d bytes: %d, want %d", bytes, got, want)
		}
	}
}

// TestBytesAreSwapped is what numbers in network order need.
func TestBytesAreSwapped(t *testing.T) {
	if got := swap32(0x01020304); got != 0x04030201 {
		t.Errorf("%#x", got)
	}
	if got := swap64(0x0102030405060708); got != 0x0807060504030201 {
		t.Errorf("%#x", got)
	}
}
