package fabric

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/jsonfile"
	"github.com/simccl/simccl/internal/termtext"
)

// Packets is the member packets of a fabric file: frames, buffers of switches, PFC, ECN marks and congestion
// control. Nil and empty members keep the preset's values.
type Packets struct {
	Preset string `json:"preset,omitempty"`
	// Link is ethernet (a full buffer pauses the sender, PFC) or infiniband (senders wait for credits).
	Link string `json:"link,omitempty"`
	CC   string `json:"cc,omitempty"` // congestion control of senders
	// Balance is the unit of load balancing: queue-pair (one route per queue pair, by Network.Routing),
	// flowlet (the shortest queue after a gap of Gap without frames) or packet (the shortest queue for each
	// frame).
	Balance string   `json:"balance,omitempty"`
	Gap     *float64 `json:"flowlet_us,omitempty"`
	Quantum *float64 `json:"quantum_kb,omitempty"` // by which queues must differ
	Repair  string   `json:"repair,omitempty"`     // gbn, sr or trim
	// of a cable without latency_us, what is behind it included
	Hop     *float64 `json:"hop_us,omitempty"`
	MTU     *float64 `json:"mtu,omitempty"` // payload of a frame, bytes
	AckEach *float64 `json:"ack_every,omitempty"`
	Buffer  *float64 `json:"buffer_kb,omitempty"`  // of a switch
	Reserve *float64 `json:"reserve_kb,omitempty"` // of a port
	Resume  *float64 `json:"resume_kb,omitempty"`
	Alpha   *float64 `json:"alpha,omitempty"` // share of the free buffer that a port may fill
	Delays  *float64 `json:"headroom_delays,omitempty"`
	XOff    *float64 `json:"xoff_kb,omitempty"`
	XOn     *float64 `json:"xon_kb,omitempty"`
	// of 512 bit times that a pause lasts; 0: until it is ended
	Quanta *float64 `json:"pause_quanta,omitempty"`
	// Through is the number of bytes of a frame after which a cut-through switch begins to forward it; 0:
	// store and forward.
	Through *float64 `json:"cut_through,omitempty"`
	Credits *float64 `json:"credits_kb,omitempty"` // InfiniBand: buffer behind a link
	// Messages is the largest rate at which a NIC starts messages, in millions per second; 0: no bound.
	Messages *float64 `json:"message_mps,omitempty"`
	MarkAt   string   `json:"mark_at,omitempty"`     // dequeue or enqueue
	CNP      string   `json:"cnp,omitempty"`         // of DCQCN: ack or frame
	Trim     *float64 `json:"trim_kb,omitempty"`     // queue beyond which frames are cut; 0: a round trip's
	Window   *float64 `json:"window_kb,omitempty"`   // most in flight of a queue pair; 0: no bound
	Watchdog *float64 `json:"watchdog_us,omitempty"` // pause after which a switch drops a queue; 0: never
	// Marks are thresholds by the speed of a port; empty and not nil: no marks.
	Marks []Mark `json:"ecn,omitzero"`
	DCQCN *DCQCN `json:"dcqcn,omitempty"`

	at map[string]int64 // places of members in the file
}

// Mark is the thresholds of ports of a speed between which marks become more
// frequent.
type Mark struct {
	Gbit float64 `json:"gbit"`
	KMin float64 `json:"kmin_kb"`
	KMax float64 `json:"kmax_kb"`
	PMax float64 `json:"pmax"`
}

// number describes a numeric member of packets: its key, bounds, whether it is an integer, and its field.
type number struct {
	key       string
	low, high float64
	whole     bool
	of        func(*Packets) **float64
}

// numbers lists the numeric members of packets.
var numbers = []number{
	{"hop_us", 0.001, 1e6, false, func(p *Packets) **float64 { return &p.Hop }},
	{"flowlet_us", 0, 1e6, false, func(p *Packets) **float64 { return &p.Gap }},
	{"quantum_kb", 0, 1e5, false, func(p *Packets) **float64 { return &p.Quantum }},
	{"mtu", 64, 16384, true, func(p *Packets) **float64 { return &p.MTU }},
	{"ack_every", 1, 1024, true, func(p *Packets) **float64 { return &p.AckEach }},
	{"buffer_kb", 64, 1e8, false, func(p *Packets) **float64 { return &p.Buffer }},
	{"reserve_kb", 0, 1e5, false, func(p *Packets) **float64 { return &p.Reserve }},
	{"resume_kb", 0, 1e6, false, func(p *Packets) **float64 { return &p.Resume }},
	{"alpha", 1.0 / 1024, 8, false, func(p *Packets) **float64 { return &p.Alpha }},
	{"headroom_delays", 0, 1000, true, func(p *Packets) **float64 { return &p.Delays }},
	{"xoff_kb", 1, 1e7, false, func(p *Packets) **float64 { return &p.XOff }},
	{"xon_kb", 0, 1e7, false, func(p *Packets) **float64 { return &p.XOn }},
	{"pause_quanta", 0, 65535, true, func(p *Packets) **float64 { return &p.Quanta }},
	{"cut_through", 0, 16384, true, func(p *Packets) **float64 { return &p.Through }},
	{"message_mps", 0, 1e6, false, func(p *Packets) **float64 { return &p.Messages }},
	{"trim_kb", 0, 1e6, false, func(p *Packets) **float64 { return &p.Trim }},
	{"credits_kb", 16, 1e6, false, func(p *Packets) **float64 { return &p.Credits }},
	{"window_kb", 0, 1e7, false, func(p *Packets) **float64 { return &p.Window }},
	{"watchdog_us", 0, 1e9, false, func(p *Packets) **float64 { return &p.Watchdog }},
}

// word is a member of packets that is one of some words.
type word struct {
	key string
	of  func(*Packets) *string
	may []string // nil: any, checked where it is used
}

var words = []word{
	{"preset", func(p *Packets) *string { return &p.Preset }, nil},
	{"cc", func(p *Packets) *string { return &p.CC }, nil},
	{"link", func(p *Packets) *string { return &p.Link }, []string{"ethernet", "infiniband"}},
	{"balance", func(p *Packets) *string { return &p.Balance }, []string{"queue-pair", "flowlet", "packet"}},
	{"mark_at", func(p *Packets) *string { return &p.MarkAt }, []string{"dequeue", "enqueue"}},
	{"cnp", func(p *Packets) *string { return &p.CNP }, []string{"ack", "frame"}},
	{"repair", func(p *Packets) *string { return &p.Repair }, []string{"gbn", "sr", "trim"}},
}

// PacketsError reports an invalid value in packets.
type PacketsError struct{ Key, Problem string }

func (e *PacketsError) Error() string { return "packets." + e.Key + ": " + e.Problem }

// packets reads the member packets and notes the offset of each of its members for errors.
func (r *reader) packets(n *Network) error {
	n.Packets = &Packets{}
	n.Packets.at = map[string]int64{}
	return r.object(func(key string, at int64) error {
		n.Packets.at[key] = r.Next()
		return r.packet(n.Packets, key, at)
	})
}

func (r *reader) packet(p *Packets, key string, at int64) error {
	from := r.Next()
	for _, m := range numbers {
		if m.key != key {
			continue
		}
		v, err := r.number(key)
		if err != nil {
			return err
		}
		if !(v >= m.low && v <= m.high) || m.whole && v != math.Trunc(v) {
			kind := "number"
			if m.whole {
				kind = "whole number"
			}
			return r.Fail(from, "", "%s %g: write a %s from %.10g to %.10g", key, v, kind, m.low, m.high)
		}
		*m.of(p) = &v
		return nil
	}
	for _, m := range words {
		if m.key != key {
			continue
		}
		if err := r.Decode(m.of(p)); err != nil {
			return err
		}
		for _, may := range m.may {
			if *m.of(p) == may {
				return nil
			}
		}
		switch {
		case m.may == nil && *m.of(p) == "":
			return r.Fail(from, "", "%s is empty: write a name, or leave it out", key)
		case m.may != nil:
			return r.Fail(from, "", "%s %s: write one of %s", key, termtext.Quote(*m.of(p), 0),
				strings.Join(m.may, ", "))
		}
		return nil
	}
	if key == "ecn" {
		p.Marks = []Mark{}
		return r.List(func(at int64) error { return r.mark(p, at) })
	}
	if key == "dcqcn" {
		return r.dcqcn(p)
	}
	return r.Fail(at, "docs/FABRIC.md lists them", "unknown member %q of packets", key)
}

func (r *reader) mark(p *Packets, at int64) error {
	var m Mark
	of := map[string]*float64{"gbit": &m.Gbit, "kmin_kb": &m.KMin, "kmax_kb": &m.KMax, "pmax": &m.PMax}
	err := r.object(func(key string, at int64) (err error) {
		x := of[key]
		if x == nil {
			return r.Fail(at, "write gbit, kmin_kb, kmax_kb and pmax", "unknown member %s of marks",
				termtext.Quote(key, 40))
		}
		delete(of, key)
		*x, err = r.number(key)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(of) > 0:
		return r.Fail(at, "write gbit, kmin_kb, kmax_kb and pmax", "marks of ports without %s",
			strings.Join(slices.Sorted(maps.Keys(of)), ", "))
	case !(m.Gbit >= 0.001 && m.Gbit <= 1e6) || !(m.KMin >= 0 && m.KMax >= m.KMin && m.KMax <= 1e8) ||
		!(m.PMax >= 0 && m.PMax <= 1):
		return r.Fail(at, "gbit from 0.001 to 1000000, kmin_kb at most kmax_kb, and that at most 1e8, pmax "+
			"a share from 0 to 1", "marks of ports of %g Gbit/s from %g to %g kB, at most %g", m.Gbit, m.KMin,
			m.KMax, m.PMax)
	case slices.ContainsFunc(p.Marks, func(o Mark) bool { return o.Gbit == m.Gbit }):
		return r.Fail(at, "write one", "two marks of ports of %g Gbit/s", m.Gbit)
	}
	p.Marks = append(p.Marks, m)
	return nil
}

// Placed adds to a PacketsError the position of its member in the file, data, that the network was read from.
func (n *Network) Placed(data []byte, name string, err *PacketsError) error {
	at, ok := int64(0), false
	if n.Packets != nil {
		at, ok = n.Packets.at[err.Key]
	}
	if !ok {
		return err
	}
	return jsonfile.New(data, name).Fail(at, "", "%s", err.Problem)
}

// line formats packets as JSON on one line.
func (p *Packets) line() string {
	s, _ := json.Marshal(p)
	return string(s)
}

// Crossbar returns a network of one switch with all ports; nets lists, by host and net, the speeds of the
// net's ports in Gbit/s.
func Crossbar(nets [][][]float64) *Network {
	n := &Network{Name: "one switch", Routing: Static, Switches: []Switch{{Name: "switch"}}}
	for host := range nets {
		for net, ports := range nets[host] {
			for i, gbit := range ports {
				e := End{Host: host, Net: net}
				if len(ports) > 1 {
					e.Port = i + 1
				}
				n.Cables = append(n.Cables, Cable{A: e.String(), B: "switch", Gbit: gbit, Count: 1})
			}
		}
	}
	return n
}
