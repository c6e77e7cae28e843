package packets

import (
	"maps"
	"testing"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// set are settings of 400 Gbit/s ports without congestion control.
func set(hybrid bool) Settings {
	c := packet.Config{Seed: 1, Frames: packet.Frames{Payload: 4096, Header: 82, Ack: 86, Pause: 84},
		AckFrom: 4, NackGap: units.Microsecond,
		Buffer: packet.Buffer{Bytes: 64e6, Reserve: 4e3, ResumeOffset: 3e3, Shift: 3, HeadroomDelays: 3}}
	return Settings{Config: c, Hop: 300 * units.Nanosecond, Hybrid: hybrid}
}

// hosts is so many ports of a switch, each with a link inside its host, and a queue
// pair from each of the first to the last; limit is the inner links' rate.
func hosts(n int, s Settings, limit wire.Rate) (*Model, []wire.QueueID) {
	m := New(s)
	sw := wire.Vertex{ID: int32(n), Name: "switch"}
	inner, out, in := make([]wire.LinkID, n), make([]wire.LinkID, n), make([]wire.LinkID, n)
	for i := range n {
		h := wire.Vertex{ID: int32(i), Host: true, Name: "port"}
		inner[i] = m.AddLink("pcie", limit)
		out[i], in[i] = m.AddLink("out", 50e6), m.AddLink("in", 50e6)
		c := wire.Cable{Number: int32(2 * i), From: h, To: sw, Bits: 400e9, Delay: m.Hop()}
		m.Cable(out[i], c)
		c.Number, c.From, c.To = c.Number+1, sw, h
		m.Cable(in[i], c)
	}
	var queues []wire.QueueID
	for i := range n - 1 {
		// As interned: in the order of links, not of the way.
		r := m.AddRoute([]wire.Use{{Link: inner[i], Count: 1}, {Link: in[n-1], Count: 1},
			{Link: out[i], Count: 1}})
		queues = append(queues, m.Queue(r, wire.QueueKey{Conn: int32(i)}))
	}
	m.Seal()
	return m, queues
}

// run posts messages one after the other on every queue pair and returns the time of
// the last arrival, and how many arrived.
func run(t *testing.T, m *Model, queues []wire.QueueID, messages int, bytes int64,
	every units.Time) (last units.Time, n int) {
	t.Helper()
	if m.Err() != nil {
		t.Fatal(m.Err())
	}
	next := make([]int32, len(queues))
	step := func(to units.Time) {
		for {
			at, ok := m.Next()
			if !ok || at > to {
				return
			}
			for _, tok := range m.Advance(at, nil) {
				q, k := tok>>16, tok&0xffff
				if next[q] != k {
					t.Fatalf("queue pair %d: message %d arrives in place of %d", q, k, next[q])
				}
				next[q]++
				n++
				last = at
			}
		}
	}
	for k := range messages {
		now := units.Time(k) * every
		step(now)
		for i, q := range queues {
			m.Carry(m.queues[q].route, wire.Work(bytes)*wire.NanoBytes)
			m.Post(now, q, 50e6, wire.Work(bytes)*wire.NanoBytes, int32(i<<16|k))
		}
	}
	step(1 << 60)
	return last, n
}

// TestMessages: one sender is as fast as its frames, several share the receiver's
// port, a slow host holds its messages up, and a hybrid agrees with frames alone.
func TestMessages(t *testing.T) {
	const messages, bytes = 40, 512 << 10
	for _, x := range []struct {
		name  string
		hosts int
		inner wire.Rate
		every units.Time
		want  float64 // us at least, of the last arrival, without latencies
	}{
		{"one sender", 2, 100e6, 0, messages * bytes * 4178.0 / 4096 / 50e3},
		{"three senders", 4, 100e6, 0, 3 * messages * bytes * 4178.0 / 4096 / 50e3},
		{"a slow host", 2, 20e6, 0, messages * bytes / 20e3},
		{"pauses between messages", 2, 100e6, 20 * units.Microsecond, 39*20 + bytes*4178.0/4096/50e3},
	} {
		var us [2]float64
		for i, hybrid := range []bool{false, true} {
			m, queues := hosts(x.hosts, set(hybrid), x.inner)
			last, n := run(t, m, queues, messages, bytes, x.every)
			if n != messages*len(queues) || m.Why() != nil {
				t.Fatalf("%s, hybrid %v: %d messages arrive, %v", x.name, hybrid, n, m.Why())
			}
			us[i] = last.Micros()
			if us[i] < x.want || us[i] > x.want*1.01+2 {
				t.Errorf("%s, hybrid %v: %.2f us, %.2f without latencies", x.name, hybrid, us[i], x.want)
			}
			framed := m.frames.Result().DataPacketHops > 0
			if calm := hybrid && x.hosts == 2; calm == framed {
				t.Errorf("%s, hybrid %v: frames were simulated: %v", x.name, hybrid, framed)
			}
			if load := m.Loads()[3*(x.hosts-1)+2]; int64(load.Bytes) != int64(n)*bytes {
				t.Errorf("%s, hybrid %v: %s carried %d bytes of %d", x.name, hybrid, load.Name, load.Bytes,
					int64(n)*bytes)
			}
		}
		if d := us[1]/us[0] - 1; d > 0.01 || d < -0.01 {
			t.Errorf("%s: hybrid %.2f us, frames alone %.2f", x.name, us[1], us[0])
		}
	}
}

// TestHybridTurns: a calm message in progress goes on frame by frame when a second
// sender makes its receiver's port contended.
func TestHybridTurns(t *testing.T) {
	const bytes = 4 << 20
	m, queues := hosts(3, set(true), 100e6)
	m.Post(0, queues[0], 50e6, bytes*wire.NanoBytes, 0)
	half := units.FromMicros(40)
	for at, ok := m.Next(); ok && at <= half; at, ok = m.Next() {
		m.Advance(at, nil)
	}
	m.Post(half, queues[1], 50e6, bytes*wire.NanoBytes, 1)
	var ends [2]float64
	for at, ok := m.Next(); ok; at, ok = m.Next() {
		for _, tok := range m.Advance(at, nil) {
			ends[tok] = at.Micros()
		}
	}
	all := bytes * 4178.0 / 4096 / 50e3 // of one
	if want := 40 + 2*(all-40); ends[0] < want || ends[0] > want*1.03+2 {
		t.Errorf("the first ends after %.2f us, want about %.2f", ends[0], want)
	}
	if want := 2 * all; ends[1] < want || ends[1] > want*1.03+2 {
		t.Errorf("the second ends after %.2f us, want about %.2f", ends[1], want)
	}
}

// TestHybridStaysCalm: where several senders meet but no switch would act on the queue,
// messages remain flows and end when frames do; what goes on longer is framed.
func TestHybridStaysCalm(t *testing.T) {
	for _, x := range []struct {
		bytes int64
		stirs bool
	}{{128 << 10, false}, {16 << 20, true}} {
		var ends [2]float64
		for i, hybrid := range []bool{false, true} {
			m, queues := hosts(4, set(hybrid), 100e6)
			for k, q := range queues {
				m.Post(0, q, 50e6, wire.Work(x.bytes)*wire.NanoBytes, int32(k))
			}
			for at, ok := m.Next(); ok; at, ok = m.Next() {
				if len(m.Advance(at, nil)) > 0 {
					ends[i] = at.Micros()
				}
			}
			if hybrid && m.Stirred() != x.stirs {
				t.Errorf("%d B: framed %v, want %v", x.bytes, m.Stirred(), x.stirs)
			}
		}
		if d := ends[1]/ends[0] - 1; d > 0.01 || d < -0.01 {
			t.Errorf("%d B: hybrid %.2f us, frames %.2f", x.bytes, ends[1], ends[0])
		}
	}
}

// TestFlapsEnd: a cable that flaps for a time is up after it, also where that is in the middle of an outage.
func TestFlapsEnd(t *testing.T) {
	s := set(false)
	s.Timed = []TimedFault{{A: "port", B: "switch", From: 10, To: 135, Out: 20, Every: 60}}
	m, _ := hosts(2, s, 50e6)
	all := map[[2]units.Time]int{}
	for _, f := range m.faults() {
		all[[2]units.Time{f.From, f.To}]++
	}
	if want := map[[2]units.Time]int{{10, 30}: 2, {70, 90}: 2, {130, 135}: 2}; !maps.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}
