package chrome

import (
	"fmt"
	"math"
	"strconv"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/units"
)

// stamp stores a ts until the whole event is read: only then is it known whether it may set the base.
func (p *parser) stamp(t token) {
	e := &p.event
	e.HasTS = true
	whole, pico, ok := decimal(t.text)
	if t.kind != tokNumber || !ok {
		e.BadTS, e.HasTS = shown(t), false
		return
	}
	p.whole, p.pico = whole, pico
}

// settle converts the stored ts to a time relative to the base. The first event of a file with large times
// sets the base.
func (p *parser) settle() {
	e := &p.event
	if !e.HasTS {
		return
	}
	if p.base == math.MinInt64 && e.Phase != 'M' {
		p.base = 0
		if p.whole > farMicros {
			p.base = p.whole
		}
	}
	if e.Phase == 'M' {
		p.whole = max(min(p.whole, maxMicros), -maxMicros)
	} else {
		p.whole -= p.base
	}
	if p.whole > maxMicros || p.whole < -maxMicros {
		e.BadTS = fmt.Sprintf("%d us from the first event", p.whole)
		return
	}
	e.TS = units.Time(p.whole)*units.Microsecond + units.Time(p.pico)
	if e.Dur > 0 && e.TS > math.MaxInt64-e.Dur {
		e.BadTS = fmt.Sprintf("it ends %.3g us from the first event", e.TS.Micros()+e.Dur.Micros())
	}
}

// shown returns a number for a message, shortened: a file may have one of a million digits.
func shown(t token) string { return termtext.Short(string(t.text[:min(len(t.text), maxName)]), 40) }

// duration parses microseconds exactly.
func (p *parser) duration(t token) {
	whole, pico, ok := decimal(t.text)
	if t.kind != tokNumber || !ok || whole > maxMicros || whole < -maxMicros {
		p.event.BadTS = shown(t)
		return
	}
	p.event.HasDur = true
	p.event.Dur = units.Time(whole)*units.Microsecond + units.Time(pico)
}

const (
	maxMicros = math.MaxInt64/int64(units.Microsecond) - 1
	farMicros = maxMicros / 2
)

// decimal splits a number of microseconds into whole ones and picoseconds of the same sign; further digits
// are dropped.
func decimal(b []byte) (whole, pico int64, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if whole > math.MaxInt64/10-1 {
			return 0, 0, false
		}
		whole = whole*10 + int64(b[i]-'0')
	}
	if i < len(b) && b[i] == '.' {
		scale := int64(100000)
		for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
			pico += int64(b[i]-'0') * scale
			scale /= 10
		}
	}
	if i < len(b) { // an exponent: rare, parsed as a float
		v, err := strconv.ParseFloat(string(b), 64)
		if err != nil || v > 1e18 {
			return 0, 0, false
		}
		whole = int64(v)
		pico = int64((v - float64(whole)) * 1e6)
	}
	if negative {
		return -whole, -pico, true
	}
	return whole, pico, true
}
