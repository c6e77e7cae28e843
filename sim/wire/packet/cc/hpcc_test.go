package cc

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/units"
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
		p := NewTelemetry(&c, line, 8000, 1+r.Int64N(1<<20))
		if p.even {
			left++
		}
		p.last[0] = r.Uint64N(1 << 61)
		q := p
		q.even = false
		word, s := r.Uint64N(1<<61), &Rate{Rate: line, Line: line}
		u, dt := p.measure(word, line, &p.last[0], s)
		if v, dv := q.measure(word, line, &q.last[0], s); u != v || dt != dv {
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
	x, window := NewFlows(&c, 2, 1000, 60), int64(10_000)
	for id := range int32(2) {
		x.Open(id, &Rate{Rate: 100e9, Line: 100e9}, &window, 8*units.Microsecond, 3, 0)
	}
	rows := map[uint32]int{}
	for i, hops := range []int{2, 4, 1, 3, 5, 0} {
		row := x.Send(int32(i%2), uint32(i))
		aux := row
		for i := range hops {
			aux = x.Stamp(aux, uint64(100*int(row)+i), 100e9)
		}
		rows[aux] = hops
	}
	if len(rows) != 6 {
		t.Errorf("6 frames have %d rows", len(rows))
	}
	for aux, n := range rows {
		seen := x.rows.hops(aux)
		if len(seen) != 2*n {
			t.Errorf("row %d: %d records, want %d", aux&rowMask, len(seen)/2, n)
		}
		for i := 0; 2*i < len(seen); i++ {
			if want := uint64(100*int(aux&rowMask) + i); seen[2*i] != want || seen[2*i+1] != 100e9 {
				t.Errorf("row %d, switch %d: record %d, want %d", aux&rowMask, i, seen[2*i], want)
			}
		}
	}
	aux := x.Send(0, 7)
	for range 9 {
		aux = x.Stamp(aux, 1, 100e9)
	}
	if seen := x.rows.hops(aux); seen != nil {
		t.Errorf("of more switches than telemetry has room for: %d records", len(seen)/2)
	}
}

// TestRowsEnd: where there are no numbers for the frames in flight of one more flow, that is said.
func TestRowsEnd(t *testing.T) {
	c, err := Preset("hpcc", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	x, window := NewFlows(&c, 2, 1000, 60), int64(10_000)
	open := func(id int32) error {
		return x.Open(id, &Rate{Rate: 100e9, Line: 100e9}, &window, 8*units.Microsecond, 3, 1<<30)
	}
	if err := open(0); err != nil {
		t.Errorf("the first flow: %v", err)
	}
	x.rows.next = rowMask - 3
	if err := open(1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("beyond the last number: %v", err)
	}
}
