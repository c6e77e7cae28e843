package port

import (
	"math"

	"github.com/simccl/simccl/packet/spec"
)

// SharedBuffer does the ingress accounting of a switch, by ingress port and class, and decides when a
// neighbour is paused (XOFF) and resumed (XON). Sizes are bytes:
//
//	┌ reserve of each port ┐┌── shared: thresholds move with what is free ──┐┌ headroom of each port ┐
type SharedBuffer struct {
	Arriving []int64 // bytes of this window, by port
	Total    int64   // sum of Arriving
	Exact    bool    // shared is up to date and thresholds are checked for each frame

	b        *spec.Buffer
	classes  int
	in       []int64 // by port and class: bytes outside the headroom
	headroom []int64 // by port and class: bytes in the headroom
	xoff     []bool  // by port and class: the neighbour is paused
	paused   int     // number of xoff that are set
	above    int64   // sum of headroom
	shared   int64   // shared memory in use
	base     int64   // size of the shared memory
	expected []int64 // by port: most bytes that can arrive in a window
	expects  int64   // sum of expected; negative: unbounded
	slack    int64   // lower bound of the arrivals before a queue reaches its threshold
	held     int64   // sum of in
	shift    []int8  // by port: threshold = free shared memory >> shift
	growth   int64   // most bytes by which a queue approaches its threshold per arriving byte
	most     []int64 // headroom of each port
}

// IngressPort is the incoming link of a port.
type IngressPort struct{ Rate, Delay int64 } // bit/s, ps

// NewSharedBuffer divides a switch's memory among its ports. hostRate is the rate of host ports: thresholds
// of faster ports are higher.
func NewSharedBuffer(b *spec.Buffer, classes int, ports []IngressPort, hostRate int64) SharedBuffer {
	n := len(ports)
	m := SharedBuffer{Arriving: make([]int64, n), b: b, classes: classes, in: make([]int64, n*classes),
		headroom: make([]int64, n*classes), xoff: make([]bool, n*classes),
		base: b.Bytes - int64(n)*b.Reserve, shift: make([]int8, n), growth: 1 + 1<<max(0, -b.Shift),
		most: make([]int64, n)}
	for p, l := range ports {
		m.most[p] = spec.Headroom(l.Rate, l.Delay/1000, b.HeadroomDelays) + b.Headroom
		m.base -= m.most[p]
		m.shift[p] = int8(b.Shift)
		for r := l.Rate; r > hostRate && m.shift[p] > 0; r /= 2 {
			m.shift[p]--
		}
	}
	return m
}

// Shared returns the size of the shared memory; not positive: headrooms and reserves exceed the buffer.
func (m *SharedBuffer) Shared() int64 { return m.base }

// Stopped reports whether the neighbour at a port is paused.
func (m *SharedBuffer) Stopped(port, class int) bool { return m.xoff[port*m.classes+class] }

// Quiet reports whether no neighbour is paused and no headroom is in use.
func (m *SharedBuffer) Quiet() bool { return m.paused == 0 && m.above == 0 }

// Add counts an arriving frame without checking thresholds (Calm windows).
func (m *SharedBuffer) Add(port uint32, class uint8, size int64) {
	m.in[int(port)*m.classes+int(class)] += size
	m.held += size
}

// Held returns the table that Add writes, for hot loops that update it themselves and report the total to
// Subtract.
func (m *SharedBuffer) Held() []int64 { return m.in }

// Subtract reduces the total by the bytes that the caller took out of Held's table.
func (m *SharedBuffer) Subtract(bytes int64) { m.held -= bytes }

// Calm reports whether no ingress queue can reach its threshold in this window: then ports are independent of
// each other and are simulated one by one.
func (m *SharedBuffer) Calm() bool {
	m.slack -= m.growth * m.Total // a queue has grown, and its threshold fallen, by at most that
	return m.calm(m.Arriving, m.Total)
}

// Expect bounds the arrivals of a port in a window (ps), given frames of size bytes and transmission time
// lasts (ps).
func (m *SharedBuffer) Expect(port int, size, window, lasts int64) {
	if m.expected == nil {
		m.expected = make([]int64, len(m.Arriving))
	}
	if lasts == 0 || m.expects < 0 {
		m.expects = -1
		return
	}
	most := max(m.expected[port], (window/lasts+2)*size)
	m.expects += most - m.expected[port]
	m.expected[port] = most
}

// CalmAhead is Calm for the largest arrivals that Expect allows.
func (m *SharedBuffer) CalmAhead() bool { return m.expects >= 0 && m.calm(m.expected, m.expects) }

// calm tries three bounds, cheapest first: everything in one queue, the slack left over from earlier windows,
// the exact distance of each queue.
func (m *SharedBuffer) calm(arriving []int64, total int64) bool {
	if m.b.Trim > 0 {
		return true // each queue has its own limit
	}
	if !m.Quiet() || m.b.Credits > 0 {
		return false
	}
	if most := m.held + total; m.b.XOff == 0 && most < m.base && most-m.b.Reserve < scaled(m.base-most,
		int8(m.b.Shift)) {
		return true // even if all arrivals joined one queue
	}
	if m.growth*total < m.slack {
		return true
	}
	m.slack = m.left(arriving, total)
	return m.slack > 0
}

// left returns the least distance (bytes) of an ingress queue from its threshold, or of the shared memory
// from its end, once the given bytes have arrived. A queue without arrivals does not count.
func (m *SharedBuffer) left(arriving []int64, total int64) int64 {
	reserve, shared := m.b.Reserve, total
	for _, b := range m.in {
		shared += max(0, b-reserve)
	}
	left := m.base - shared
	for p, come := range arriving {
		bytes := come
		for c := 1; c < m.classes; c++ {
			bytes += m.in[p*m.classes+c]
		}
		l := scaled(m.base-shared, m.shift[p]) - (bytes - reserve)
		if x := m.b.XOff; x > 0 {
			l = min(l, x-bytes)
		}
		if come > 0 || l > 0 { // a queue above its threshold without arrivals has no further effect
			left = min(left, l)
		} else {
			left = min(left, 1)
		}
	}
	return left
}

// foreseen caps Fills' extrapolation: queues are assumed to grow to at most 16 times their present length.
const foreseen = 16

// Fills reports whether an ingress queue would reach its threshold if queues grew in proportion to the frames
// sent (sent of all).
func (m *SharedBuffer) Fills(all, sent int64) bool {
	if m.b.Trim > 0 || m.b.Credits > 0 {
		return false
	}
	times := min(foreseen, float64(all)/float64(max(1, sent)))
	reserve, free := float64(m.b.Reserve), float64(m.base)
	for _, b := range m.in {
		free -= max(0, times*float64(b)-reserve)
	}
	for k, b := range m.in {
		most := math.Ldexp(max(0, free), -int(m.shift[k/m.classes])) + reserve
		if x := m.b.XOff; x > 0 {
			most = float64(x)
		}
		if b > 0 && times*float64(b) >= most {
			return true
		}
	}
	return false
}

// Recount computes shared, which is kept exact from then on.
func (m *SharedBuffer) Recount() {
	m.shared, m.Exact = 0, true
	for _, b := range m.in {
		m.shared += max(0, b-m.b.Reserve)
	}
}

// threshold returns how much shared memory an ingress queue of a port may use: free memory >> shift (dynamic
// threshold).
func (m *SharedBuffer) threshold(port uint32) int64 { return scaled(m.base-m.shared, m.shift[port]) }

// scaled shifts bytes right, or left for a negative shift.
func scaled(bytes int64, shift int8) int64 {
	if shift < 0 {
		return bytes << -shift
	}
	return bytes >> shift
}

// used returns the bytes of ingress queue k in the shared memory.
func (m *SharedBuffer) used(k int) int64 { return max(0, m.in[k]-m.b.Reserve) }

// Admit accounts for an arriving frame: reserve first, then shared memory up to the threshold, then headroom.
// room is false if all are full; pause asks the caller to send a PAUSE.
func (m *SharedBuffer) Admit(port uint32, class uint8, size int64) (room, pause bool) {
	k, limit := int(port)*m.classes+int(class), m.threshold(port)
	over := m.in[k] + size - m.b.Reserve
	if full := size+m.used(k) > limit || m.b.Shift < 0 && min(size, over) > m.base-m.shared; full &&
		size+m.headroom[k] > m.most[port] {
		return false, false
	}
	switch {
	case over <= 0:
		m.in[k] += size
		m.held += size
	// a threshold above the free memory grants only the free memory
	case over > limit || min(size, over) > m.base-m.shared:
		m.headroom[k] += size
		m.above += size
	default:
		m.in[k] += size
		m.held += size
		m.shared += min(size, over)
	}
	if pause = !m.xoff[k] && (m.headroom[k] > 0 || m.overfull(k, port)); pause {
		m.xoff[k] = true
		m.paused++
	}
	return true, pause
}

// Passes reports whether a frame that is forwarded immediately leaves all accounts unchanged.
func (m *SharedBuffer) Passes(port uint32, class uint8, size int64) bool {
	k, limit := int(port)*m.classes+int(class), m.threshold(port)
	in := m.in[k] + size
	if in > m.b.Reserve || m.xoff[k] || m.headroom[k] > 0 || size > max(limit, m.most[port]) {
		return false
	}
	if x := m.b.XOff; x > 0 {
		return in < x
	}
	return limit > 0
}

// Release accounts for a departing frame; resume asks the caller to send a RESUME.
func (m *SharedBuffer) Release(port uint32, class uint8, size int64) (resume bool) {
	k := int(port)*m.classes + int(class)
	if !m.Exact {
		m.in[k] -= size
		m.held -= size
		return false
	}
	head := min(m.headroom[k], size)
	m.headroom[k] -= head
	m.above -= head
	m.shared -= min(size-head, m.used(k))
	m.in[k] -= size - head
	m.held -= size - head
	if resume = m.xoff[k] && m.headroom[k] == 0 && m.relieved(k, port); resume {
		m.xoff[k] = false
		m.paused--
	}
	return resume
}

// overfull reports whether ingress queue k is at its XOFF threshold.
func (m *SharedBuffer) overfull(k int, port uint32) bool {
	if x := m.b.XOff; x > 0 {
		return m.in[k] >= x
	}
	return m.used(k) >= m.threshold(port)
}

// relieved reports whether ingress queue k is below its XON threshold.
func (m *SharedBuffer) relieved(k int, port uint32) bool {
	if m.b.XOff > 0 {
		return m.in[k] <= m.b.XOn
	}
	u := m.used(k)
	return u == 0 || u+m.b.ResumeOffset <= m.threshold(port)
}
