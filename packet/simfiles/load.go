package simfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// NS3Scenario is a run as read: network, flows and settings.
type NS3Scenario struct {
	Network packet.Network
	Flows   []packet.Flow
	Config  packet.Config
	// Marking is the thresholds of the three maps, even where ECN is off.
	Marking []packet.Marking
	// Ignored lists the positions (file:line:column) of unknown keys, which ns-3 ignores.
	Ignored []string
	Carried int // bytes in each frame for congestion control
}

// LoadNS3 reads a configuration and the files that it names. A relative name is searched in the
// configuration's directory, then in the working directory, as in ns-3. Errors: *fail.FileError,
// *packet.UnsupportedError.
func LoadNS3(config string, read func(name string) ([]byte, error)) (*NS3Scenario, error) {
	data, err := read(config)
	if err != nil {
		return nil, err
	}
	s, err := readConfig(config, data)
	if err != nil {
		return nil, err
	}
	beside := func(w word) (*wordList, error) {
		name := w.Text
		if !path.IsAbs(name) {
			name = path.Join(path.Dir(config), name)
		}
		data, err := read(name)
		if name != w.Text && errors.Is(err, fs.ErrNotExist) {
			if here, e := read(w.Text); e == nil {
				name, data, err = w.Text, here, nil
			}
		}
		if err != nil {
			return nil, &fail.FileError{File: config, Line: w.Line, Col: w.Col, Problem: err.Error()}
		}
		return splitWords(name, data), nil
	}
	x := &NS3Scenario{Ignored: s.ignored}
	t, err := beside(s.topology)
	if err != nil {
		return nil, err
	}
	if err := x.readTopology(t, s); err != nil {
		return nil, err
	}
	if err := x.fits(config, s); err != nil {
		return nil, err
	}
	if t, err = beside(s.flows); err != nil {
		return nil, err
	}
	if err := x.readFlows(t); err != nil {
		return nil, err
	}
	x.configure(s)
	return x, x.takeDown(config, s)
}

// fits refuses a BUFFER_SIZE smaller than the headroom and reserve of a switch's ports: ns-3's threshold
// would wrap around.
func (x *NS3Scenario) fits(config string, s *settings) error {
	kept := make([]int64, x.Network.Nodes)
	for _, c := range x.Network.Cables {
		own := reserve + spec.Headroom(c.Rate, int64(c.Delay/units.Nanosecond), int(s.headroom))
		kept[c.A] += own
		kept[c.B] += own
	}
	for v, bytes := range kept {
		if w, said := s.at["BUFFER_SIZE"]; x.Network.Switch[v] && bytes >= s.buffer<<20 {
			if !said {
				w = word{Line: 1, Col: 1}
			}
			instead := fmt.Sprintf("write at least %d MB", bytes>>20+1)
			if bytes>>20+1 > mostBuffer {
				instead = fmt.Sprintf("no BUFFER_SIZE up to %d MB is enough: write a smaller "+
					"HEADROOM_MULT, or shorter delays or lower rates of links", mostBuffer)
			}
			return &fail.FileError{File: config, Line: w.Line, Col: w.Col,
				Problem: fmt.Sprintf("BUFFER_SIZE %d: the headroom and reserve of the ports of switch %d "+
					"take %d bytes: %s", s.buffer, v, bytes, instead)}
		}
	}
	return nil
}

// takeDown schedules LINK_DOWN; a time of 0 means none.
func (x *NS3Scenario) takeDown(config string, s *settings) error {
	if s.down[0] == 0 {
		return nil
	}
	a, b, cable := int32(s.down[1]), int32(s.down[2]), -1
	for i, c := range x.Network.Cables { // of parallel cables the last, as in routes
		if c.A == a && c.B == b || c.A == b && c.B == a {
			cable = i
		}
	}
	w := s.downAt[1]
	fail := func(format string, args ...any) error {
		return &fail.FileError{File: config, Line: w.Line, Col: w.Col, Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case cable < 0:
		return fail("LINK_DOWN: no link joins nodes %d and %d: name two that the topology joins", a, b)
	case !x.Network.Switch[a] || !x.Network.Switch[b]:
		return fail("LINK_DOWN: the link of a host leaves it without a path: name one between switches")
	}
	at := 2*units.Second + units.Time(s.down[0])*units.Microsecond
	x.Config.Faults = append(x.Config.Faults, packet.Fault{Cable: cable, From: at, Down: true, Reroute: true})
	return nil
}

// most bounds the nodes and cables of a file.
const most = 1 << 20

// readTopology reads the counts, the ids of switches, and the links.
func (x *NS3Scenario) readTopology(t *wordList, s *settings) error {
	nodes, err := t.Integer("the number of nodes", 1, most)
	if err != nil {
		return err
	}
	switches, err := t.Integer("the number of switches", 0, nodes)
	if err != nil {
		return err
	}
	links, err := t.Integer("the number of links", 0, most)
	if err != nil {
		return err
	}
	x.Network = packet.Network{Nodes: int(nodes), Switch: make([]bool, nodes)}
	for range switches {
		id, err := t.Integer("a switch", 0, nodes-1)
		if err != nil {
			return err
		}
		x.Network.Switch[id] = true
	}
	cables := make([]int, nodes)
	for range links {
		w := t.Peek()
		c, err := readLink(t, nodes, s.loss)
		if err != nil {
			return err
		}
		if c.A == c.B {
			return t.Fail(w, "node %d is linked to itself: name two nodes", c.A)
		}
		for _, v := range []int32{c.A, c.B} {
			if cables[v]++; cables[v] > 1 && !x.Network.Switch[v] {
				return t.Fail(w, "host %d has a second link: hosts with several are not simulated", v)
			}
			if x.Network.Switch[v] && s.qcn && !s.marked(c.Rate) {
				return t.Fail(w,
					"no marking for links of %d bit/s: name that rate in KMIN_MAP, KMAX_MAP and PMAX_MAP",
					c.Rate)
			}
		}
		x.Network.Cables = append(x.Network.Cables, c)
	}
	return nil
}

func (s *settings) marked(rate int64) bool {
	_, a := s.kmin[rate]
	_, b := s.kmax[rate]
	_, c := s.pmax[rate]
	return a && b && c
}

func readLink(t *wordList, nodes int64, loss float64) (c packet.Cable, err error) {
	var v int64
	if v, err = t.Integer("the first node of a link", 0, nodes-1); err != nil {
		return c, err
	}
	c.A = int32(v)
	if v, err = t.Integer("the second node of a link", 0, nodes-1); err != nil {
		return c, err
	}
	c.B = int32(v)
	w := t.Peek()
	if c.Rate, err = takeRate(t, "the rate of a link"); err != nil {
		return c, err
	}
	if c.Rate < 1e6 || c.Rate > 1e14 {
		return c, t.Fail(w, "a link of %d bit/s: write 1Mbps to 100000Gbps", c.Rate)
	}
	w = t.Peek()
	if v, err = takeDelay(t, "the delay of a link"); err != nil {
		return c, err
	}
	if v < 1 {
		return c,
			t.Fail(w,
				"a delay of %s: write at least 1ns: windows of simulation are as long as the least delay",
				w.Text)
	}
	c.Delay = units.Time(v) * units.Nanosecond
	if c.Loss, err = t.Number("the loss of a link", 0, 1); err != nil {
		return c, err
	}
	if c.Loss == 0 {
		c.Loss, c.SharedLoss = loss, true
	}
	return c, nil
}

// readFlows reads the number of flows and a line for each: source, destination, priority, port, bytes, start
// in seconds and, if the line goes on, the number and indices of the flows it waits for.
func (x *NS3Scenario) readFlows(t *wordList) error {
	n, err := t.Integer("the number of flows", 0, 1<<24)
	if err != nil {
		return err
	}
	for i := range n {
		w := t.Peek()
		f, err := x.readFlow(t)
		if err != nil {
			return err
		}
		if !t.Done() && t.Peek().Line == w.Line {
			if f.Deps, err = readDeps(t, i, n); err != nil {
				return err
			}
		}
		x.Flows = append(x.Flows, f)
	}
	return nil
}

func (x *NS3Scenario) readFlow(t *wordList) (f packet.Flow, err error) {
	host := func(what string) int32 {
		if err != nil {
			return 0
		}
		w := t.Peek()
		var v int64
		if v, err = t.Integer(what, 0, int64(x.Network.Nodes-1)); err == nil && x.Network.Switch[v] {
			err = t.Fail(w, "%s: node %d is a switch: name a host", what, v)
		}
		return int32(v)
	}
	whole := func(what string, low, high int64) (v int64) {
		if err == nil {
			v, err = t.Integer(what, low, high)
		}
		return v
	}
	w := t.Peek()
	f.Src, f.Dst = host("the source of a flow"), host("the destination of a flow")
	if err == nil && f.Src == f.Dst {
		err = t.Fail(w, "host %d sends to itself: name two hosts", f.Src)
	}
	f.Priority = uint8(whole("the priority of a flow", 1, 7))
	f.DstPort = uint16(whole("the port of a flow", 0, 65535))
	f.Bytes = whole("the bytes of a flow", 1, 1<<40)
	if err != nil {
		return f, err
	}
	start, err := t.Number("the start of a flow in seconds", 0, 1e6)
	f.Start = units.Time(fixed(start, 1e9)) * units.Nanosecond
	return f, err
}

func readDeps(t *wordList, self, flows int64) ([]int32, error) {
	n, err := t.Integer("the number of flows that a flow waits for", 0, flows)
	if err != nil {
		return nil, err
	}
	var deps []int32
	for range n {
		w := t.Peek()
		d, err := t.Integer("a flow to wait for", 0, flows-1)
		if err != nil {
			return nil, err
		}
		if d == self {
			return nil, t.Fail(w, "flow %d waits for itself: name another", d)
		}
		deps = append(deps, int32(d))
	}
	return deps, nil
}
