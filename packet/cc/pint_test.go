package cc

import (
	"math"
	"testing"

	"github.com/simccl/simccl/units"
)

// pintCoder codes with numbers of a list, and counts them.
func pintCoder(numbers ...uint32) (x *PintCoder, drawn *int) {
	drawn = new(int)
	c := &Params{BaseRTT: 50 * units.Microsecond, PintBase: 1.05, PintShare: 0.5}
	return NewPintCoder(c, func() uint32 { *drawn++; return numbers[(*drawn-1)%len(numbers)] }), drawn
}

// TestPintLog: integers of more than 16 bits are cut, and go up where a number drawn is below what is cut
// off.
func TestPintLog(t *testing.T) {
	x, drawn := pintCoder(1, 2)
	at := func(n float64) int64 { return int64(math.Log2(n) * logUnit) }
	for _, c := range []struct {
		n, want int64
		drawn   int
	}{{0, math.MinInt32, 0}, {1, 0, 0}, {1000, at(1000), 0}, {1000, at(1000), 0}, {65535, at(65535), 0},
		{4*50000 + 2, at(4 * 50001), 1}, {4*50000 + 2, at(4 * 50000), 2}, {1 << 17, 17 * logUnit, 3}} {
		if got := x.log(c.n); got != c.want || *drawn != c.drawn {
			t.Errorf("of %d: %d with %d draws, not %d with %d", c.n, got, *drawn, c.want, c.drawn)
		}
	}
}

// TestPintCode: what a port carries is its utilisation within a power, up or down by the number drawn.
func TestPintCode(t *testing.T) {
	for _, draw := range []uint32{0, codeUnit - 1} {
		x, drawn := pintCoder(draw)
		var p PintPort
		p.Sent(1_000_000, 1000)
		for k := range 1000 { // 1000 bytes each 80 ns: a link of 100 Gb/s is full, and nothing waits
			p.Seen(uint32(k), 1_000_000+80*int64(k+1), 0)
			p.Sent(1_000_000+80*int64(k+1), 1000)
		}
		code := uint32(0)
		for k := range 1000 {
			if _, ok := p.Next(uint32(k + 1)); ok {
				t.Fatal("a frame was seen elsewhere")
			}
			f, ok := p.Next(uint32(k))
			if !ok {
				t.Fatal("a frame was not seen")
			}
			code = x.Code(&p, f, 100e9)
		}
		// The mean over a round trip of 625 frames has risen to 1-exp(-1000/625).
		u := math.Pow(x.c.PintBase, float64(code)) / PintUnit
		if want := 0.798; u < want/1.06 || u > want*1.06 || *drawn != 1000 {
			t.Errorf("number %d: a utilisation of %.3f, not %.3f, with %d draws", draw, u, want, *drawn)
		}
	}
	low, _ := pintCoder(codeUnit/2 - 1)
	high, _ := pintCoder(codeUnit / 2)
	if low.Skips() || !high.Skips() {
		t.Error("half of the acknowledgements count, those with numbers below a half")
	}
}
