package cc

import (
	"math"
	"math/bits"
)

// The switches of the HPCC simulator compute utilisations as hardware would: with logarithms in fixed point
// of integers that are cut to 16 bits, up or down by a number drawn (model/switch-node.cc).
const (
	logBits  = 16      // that are left of an integer
	logUnit  = 1 << 15 // of logarithms
	codeUnit = 1 << 16 // of chances
	kept     = 1 << 14 // codes of utilisations below 32 are kept
)

// PintFrame is what a port sees when it begins a frame of data.
type PintFrame struct {
	Wire  uint32 // its place on the link
	Size  uint16 // bytes of the frame before; 0: there was none
	Since int64  // ns since that began
	Held  int64  // bytes that the frame leaves behind
}

// Seen is a frame of data that begins at a time in ns and leaves so many bytes behind.
func (p *PintPort) Seen(wire uint32, ns, held int64) {
	p.frames = append(p.frames, PintFrame{wire, p.size, ns - p.last, held})
}

// Next takes the first frame that was seen, if it lies at a place on the link.
func (p *PintPort) Next(wire uint32) (f PintFrame, ok bool) {
	if p.taken == len(p.frames) || p.frames[p.taken].Wire != wire {
		return f, false
	}
	f = p.frames[p.taken]
	if p.taken++; p.taken == len(p.frames) {
		p.frames, p.taken = p.frames[:0], 0
	}
	return f, true
}

// PintCoder codes utilisations with numbers that are drawn in turn. What depends on no number is kept.
type PintCoder struct {
	c     *Params
	draw  func() uint32 // a number of 31 bits
	whole int64         // the round trip in ns
	unit  float64       // logarithm, in logUnit, of a second in ns
	trip  float64       // that of whole
	base  float64       // factor of logarithms to PintBase
	logs  []int32       // of integers, and one more; 0: not known
	codes []pintCode    // of utilisations in PintUnit
}

// pintCode is the power below a utilisation, and below which number it is one more.
type pintCode struct {
	power uint16
	below uint32
	known bool
}

// NewPintCoder draws numbers of 31 bits.
func NewPintCoder(c *Params, draw func() uint32) *PintCoder {
	x := &PintCoder{c: c, draw: draw, whole: int64(c.BaseRTT) / 1000, base: 1 / math.Log(c.PintBase),
		logs: make([]int32, 1<<logBits+1), codes: make([]pintCode, kept)}
	x.trip, x.unit = math.Log2(float64(x.whole))*logUnit, math.Log2(1e9)*logUnit
	return x
}

// Code is the power of PintBase that a frame carries from a port of a rate in bit/s.
func (x *PintCoder) Code(p *PintPort, f PintFrame, rate int64) uint32 {
	if p.rate != rate {
		p.rate, p.rateLog, p.sentSize = rate, math.Log2(float64(rate/8))*logUnit, 0
	}
	since, queue, before := min(f.Since, x.whole), 0.0, 0.0
	if f.Held>>8 > 0 {
		a := x.log(since)
		a += x.log(f.Held >> 8)
		queue = math.Exp2((float64(a)+x.unit-p.rateLog-2*x.trip)/logUnit) * 256
	}
	if f.Size != p.sentSize {
		p.sentSize, p.sent = f.Size, 0
		if f.Size > 0 {
			p.sent = math.Exp2((float64(x.log(int64(f.Size))) + x.unit - p.rateLog - x.trip) / logUnit)
		}
	}
	if x.whole > since && p.util > 0 {
		a := x.log(x.whole - since)
		a += x.log(int64(math.Round(p.util * pintKept)))
		before = math.Exp2((float64(a)-x.trip)/logUnit) / pintKept
	}
	p.util = queue + p.sent + before
	n, code := max(1, math.Ceil(p.util*PintUnit)), pintCode{}
	if n >= kept {
		code = x.code(n)
	} else if code = x.codes[int(n)]; !code.known {
		code = x.code(n)
		x.codes[int(n)] = code
	}
	if x.draw()%codeUnit < code.below {
		code.power++
	}
	return uint32(code.power)
}

// log is the logarithm of an integer in logUnit.
func (x *PintCoder) log(n int64) int64 {
	if n <= 0 {
		return math.MinInt32
	}
	if cut := bits.Len64(uint64(n)) - logBits; cut > 0 {
		rest := n & (1<<cut - 1)
		if n -= rest; rest > int64(x.draw())&(1<<cut-1) {
			n += 1 << cut
		}
		return int64(math.Log2(float64(n)) * logUnit)
	}
	if x.logs[n] == 0 {
		x.logs[n] = int32(math.Log2(float64(n))*logUnit) + 1
	}
	return int64(x.logs[n]) - 1
}

// code codes a utilisation in PintUnit.
func (x *PintCoder) code(n float64) pintCode {
	power := math.Log(n) * x.base
	up, down := uint16(int64(math.Ceil(power))), uint16(int64(math.Floor(power))) // a power has 16 bits
	if up == down {
		return pintCode{power: down, known: true} // n is that power, and no number is below
	}
	high, low := math.Pow(x.c.PintBase, float64(up)), math.Pow(x.c.PintBase, float64(down))
	return pintCode{down, uint32(min(codeUnit, math.Ceil(max(0, (n-low)/(high-low)*codeUnit)))), true}
}

// Skips draws whether a sender does not look at an acknowledgement.
func (x *PintCoder) Skips() bool { return x.draw()%codeUnit >= uint32(codeUnit*x.c.PintShare) }
