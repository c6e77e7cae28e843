package cc

import (
	"math/rand/v2"
	"testing"
)

// TestMeasureShort: where a queue times a line by that line is left out the utilisation is the same to
// the last bit, for rates of whole Gb/s and for odd ones.
func TestMeasureShort(t *testing.T) {
	c, err := Preset("hpcc", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	r, left := rand.New(rand.NewPCG(7, 1)), 0
	for range 20_000 {
		line := int64(1+r.IntN(1600)) * 1e9
		if r.IntN(4) == 0 {
			line = 1 + r.Int64N(2e12)
		}
		p := NewTelemetry(&c, line, 8000, 1+r.Int64N(1<<20), 1000, 1)
		if p.even {
			left++
		}
		p.last[0] = r.Uint64N(1 << 61)
		q := p
		q.even = false
		now, s := &intHop{r.Uint64N(1 << 61), line}, &Rate{Rate: line, Line: line}
		u, dt := p.measure(now, &p.last[0], s)
		if v, dv := q.measure(now, &q.last[0], s); u != v || dt != dv {
			t.Fatalf("a line of %d bit/s: utilisation %g over %d ns, want %g over %d", line, u, dt, v, dv)
		}
	}
	if left < 10_000 {
		t.Errorf("only %d of 20000 leave it out", left)
	}
}

// TestRecordsOfALongerWay: a frame that meets more switches than its flow was opened for makes room for
// their records, and those of other frames stay.
func TestRecordsOfALongerWay(t *testing.T) {
	c, err := Preset("hpcc", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	p := NewTelemetry(&c, 100e9, 8000, 10_000, 1000, 2)
	stamp := func(psn uint32, hops int) {
		p.Send(psn)
		for i := range hops {
			p.Stamp(psn, uint64(100*int(psn)+i), 100e9)
		}
	}
	stamp(1, 2)
	stamp(2, 4)
	stamp(3, 1)
	for psn, hops := range map[uint32]int{1: 2, 2: 4, 3: 1} {
		for i := range hops {
			if got, want := p.seen(psn, i).word, uint64(100*int(psn)+i); got != want {
				t.Errorf("frame %d, switch %d: record of %d ns, want %d", psn, i, got, want)
			}
		}
	}
}
