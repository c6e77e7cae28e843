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
	Arriving []int64 // of this window, by port
	Total    int64   // of them
	Exact    bool    // shared is kept up to date, thresholds are watched

	b        *spec.Buffer
	classes  int
	in       []int64 // by port and class, what came in and waits, without headroom
	headroom []int64 // by port and class, what waits in the headroom
	xoff     []bool  // by port and class: the neighbour was paused
	paused   int     // how many of them
	above    int64   // in all headrooms
	shared   int64   // of the shared memory in use
	base     int64   // shared memory in all
	expected []int64 // most that arrives in a window, by port
	expects  int64   // in all; negative: no bound is known
	slack    int64   // so much may come at least before an ingress queue can reach its threshold
	held     int64   // in in
	shift    []int8  // of a port: its threshold is the free memory, right by so many bits
	growth   int64   // by so many times what comes a queue comes nearer to its threshold, at most
	most     []int64 // headroom of a port
}

// IngressPort is a link to a neighbour.
type IngressPort struct{ Rate, Delay int64 } // bit/s, ps

// NewSharedBuffer is the memory of a switch with ports and classes; hosts have ports of a rate.
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

// Shared is how much ports share.
func (m *SharedBuffer) Shared() int64 { return m.base }

// Stopped reports whether a neighbour was paused.
func (m *SharedBuffer) Stopped(port, class int) bool { return m.xoff[port*m.classes+class] }

// Quiet reports whether no neighbour is paused.
func (m *SharedBuffer) Quiet() bool { return m.paused == 0 && m.above == 0 }

// Add counts what comes in, where no threshold is near.
func (m *SharedBuffer) Add(port uint32, class uint8, size int64) {
	m.in[int(port)*m.classes+int(class)] += size
	m.held += size
}

// Held is what Add counts, by port and class; Less records what was taken away there in all.
func (m *SharedBuffer) Held() []int64 { return m.in }

// Less reports whether Held is so much less in all.
func (m *SharedBuffer) Less(bytes int64) { m.held -= bytes }

// Calm reports whether in this window no ingress queue can reach its threshold, that
// none is above it, and so that ports do not influence each other.
func (m *SharedBuffer) Calm() bool {
	m.slack -= m.growth * m.Total // an ingress queue has grown by no more than that, and its threshold fallen
	return m.calm(m.Arriving, m.Total)
}

// Expect reports whether what arrives by a port in a window of so many ps may be of frames of a size that
// last so many.
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

// CalmAhead is Calm whatever arrives.
func (m *SharedBuffer) CalmAhead() bool { return m.expects >= 0 && m.calm(m.expected, m.expects) }

// calm is Calm for a window in which so much arrives at most, by port and in all.
func (m *SharedBuffer) calm(arriving []int64, total int64) bool {
	if m.b.Trim > 0 {
		return true // each queue by itself
	}
	if !m.Quiet() || m.b.Credits > 0 {
		return false
	}
	if most := m.held + total; m.b.XOff == 0 && most < m.base && most-m.b.Reserve < scaled(m.base-most,
		int8(m.b.Shift)) {
		return true // were all of it in one queue
	}
	if m.growth*total < m.slack {
		return true
	}
	m.slack = m.left(arriving, total)
	return m.slack > 0
}

// left is by how much the ingress queue that is nearest to its threshold is below it once so
// much has come, or the shared memory below its end; none is where nothing comes.
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
		if come > 0 || l > 0 { // a queue above its threshold to which nothing comes acts no more
			left = min(left, l)
		} else {
			left = min(left, 1)
		}
	}
	return left
}

// foreseen is for how many times as long as a run lasts it is foreseen how long queues get.
const foreseen = 16

// Fills reports whether an ingress queue will come to its threshold if all grow as they did while so many
// frames of all were sent.
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

// Recount counts the shared memory in use, to be kept up to date from now on.
func (m *SharedBuffer) Recount() {
	m.shared, m.Exact = 0, true
	for _, b := range m.in {
		m.shared += max(0, b-m.b.Reserve)
	}
}

// threshold is how much of the shared memory an ingress queue of a port may use.
func (m *SharedBuffer) threshold(port uint32) int64 { return scaled(m.base-m.shared, m.shift[port]) }

// scaled is so many bytes right by a shift, or left where that is negative.
func scaled(bytes int64, shift int8) int64 {
	if shift < 0 {
		return bytes << -shift
	}
	return bytes >> shift
}

// used is what an ingress queue uses of the shared memory.
func (m *SharedBuffer) used(k int) int64 { return max(0, m.in[k]-m.b.Reserve) }

// Admit accounts for what comes in; without room it is to be dropped. pause says that the
// neighbour is to pause.
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
	// a threshold above the free memory grants no more than that
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

// Passes reports whether what comes in and leaves at once changes nothing: there is room, and no threshold
// is near.
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

// Release accounts for what leaves. resume says that the neighbour is to go on.
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

// overfull reports whether an ingress queue must pause its neighbour.
func (m *SharedBuffer) overfull(k int, port uint32) bool {
	if x := m.b.XOff; x > 0 {
		return m.in[k] >= x
	}
	return m.used(k) >= m.threshold(port)
}

// relieved reports whether its neighbour may go on.
func (m *SharedBuffer) relieved(k int, port uint32) bool {
	if m.b.XOff > 0 {
		return m.in[k] <= m.b.XOn
	}
	u := m.used(k)
	return u == 0 || u+m.b.ResumeOffset <= m.threshold(port)
}
