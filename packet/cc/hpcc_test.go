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
	x := NewFlows(&c, 1, 1000, 60)
	r, left := rand.New(rand.NewPCG(7, 1)), 0
	for range 20_000 {
		line := int64(1+r.IntN(1600)) * 1e9
		if r.IntN(4) == 0 {
			line = 1 + r.Int64N(2e12)
		}
		p, window := NewTelemetry(&c, line, 8000), 1+r.Int64N(1<<20)
		if p.even {
			left++
		}
		p.last[0] = r.Uint64N(1 << 61)
		q := p
		q.even = false
		word, s := r.Uint64N(1<<61), &Rate{Rate: line, Line: line}
		u, dt := p.measure(&x, word, line, &p.last[0], s, window)
		if v, dv := q.measure(&x, word, line, &q.last[0], s, window); u != v || dt != dv {
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
		if len(seen) != n {
			t.Errorf("row %d: %d records, want %d", aux&rowMask, len(seen), n)
		}
		for i, word := range seen {
			if want := uint64(100*int(aux&rowMask) + i); word != want || x.rows.rate(aux, word, i) != 100e9 {
				t.Errorf("row %d, switch %d: record %d, want %d", aux&rowMask, i, word, want)
			}
		}
	}
	aux := x.Send(0, 7)
	for range 9 {
		aux = x.Stamp(aux, 1, 100e9)
	}
	if seen := x.rows.hops(aux); seen != nil {
		t.Errorf("of more switches than telemetry has room for: %d records", len(seen))
	}
}

// TestRowsGrow: frames in flight have rows of their own, however many they become, and not many more rows
// are taken.
func TestRowsGrow(t *testing.T) {
	c, err := Preset("hpcc", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	x, window := NewFlows(&c, 1, 1000, 60), int64(100_000)
	x.InOrder = true
	x.Open(0, &Rate{Rate: 100e9, Line: 100e9}, &window, 8*units.Microsecond, 3, 0)
	r, una, sent := rand.New(rand.NewPCG(7, 2)), uint32(0), []uint32(nil)
	for most := range 102 {
		for range 20 {
			switch flight := uint32(len(sent)) - una; {
			case flight > 0 && r.IntN(2) == 0:
				una += 1 + r.Uint32N(flight)
			case int(flight) < most:
				aux := x.Sent(0, uint32(len(sent)), flight, 0)
				for psn := una; psn < uint32(len(sent)); psn++ {
					if sent[psn] == aux {
						t.Fatalf("with %d in flight, frame %d has the row of frame %d", flight, len(sent),
							psn)
					}
				}
				sent = append(sent, aux)
			}
		}
		if most := uint32(max(4, 4*most)); x.rows.next > most {
			t.Fatalf("%d rows for at most %d frames in flight", x.rows.next, most)
		}
	}
}

// TestRates: records of more different rates than there are codes bring each its own.
func TestRates(t *testing.T) {
	c, err := Preset("hpcc", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	x, window := NewFlows(&c, 1, 1000, 60), int64(100_000)
	x.Open(0, &Rate{Rate: 100e9, Line: 100e9}, &window, 8*units.Microsecond, 5, 0)
	var all []uint32
	for psn := range uint32(20) {
		aux := x.Send(0, psn)
		for k := range 5 {
			aux = x.Stamp(aux, 1<<rateShift-1, 1e9*int64(1+(3*int(psn)+k)%25))
		}
		all = append(all, aux)
	}
	for psn, aux := range all {
		for k, word := range x.rows.hops(aux) {
			if rate, want := x.rows.rate(aux, word, k), 1e9*int64(1+(3*psn+k)%25); rate != want ||
				word&(1<<rateShift-1) != 1<<rateShift-1 {
				t.Errorf("frame %d, switch %d: a rate of %d and a word of %x, want %d", psn, k, rate, word,
					want)
			}
		}
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
	if err := open(1); !errors.Is(err, errors.ErrUnsupported) || x.Full() == nil {
		t.Errorf("beyond the last number: %v", err)
	}
}
