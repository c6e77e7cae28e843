package simfiles

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/uec"
	"github.com/simccl/simccl/units"
)

// HtsimScenario is a network and its flows as read from the files.
type HtsimScenario struct {
	Network uec.Network
	Flows   []uec.Flow
	Pools   [][]int32 // flows that multishot triggers start, one at each end
}

// LoadHtsim reads a connection matrix and a topology file through read. Errors: *fail.FileError
// (file:line:column), *packet.UnsupportedError.
func LoadHtsim(matrix, topology string, read func(name string) ([]byte, error)) (*HtsimScenario, error) {
	data, err := read(topology)
	if err != nil {
		return nil, err
	}
	x := &HtsimScenario{}
	if err := x.readTopology(splitWords(topology, data)); err != nil {
		return nil, err
	}
	if data, err = read(matrix); err != nil {
		return nil, err
	}
	if err := x.readMatrix(splitWords(matrix, data)); err != nil {
		return nil, err
	}
	return x, nil
}

// tier holds the values of one tier's keys in a topology file: numbers of ports down and up, rate in Gbit/s,
// latency of the switch and of the cables below it in ns, oversubscription.
type tier struct{ down, up, gbps, latency, downLatency, oversubscribed int64 }

// readTopology reads pairs of key and value; "Tier N" begins the keys of a tier.
func (x *HtsimScenario) readTopology(t *wordList) error {
	var nodes, pod, tiers, at int64 = 0, 0, 0, -1
	var of [3]tier
	for !t.Done() {
		w, err := t.Take("a key")
		if err != nil {
			return err
		}
		if strings.HasPrefix(w.Text, "#") {
			for !t.Done() && t.Peek().Line == w.Line {
				t.Take("")
			}
			continue
		}
		key, place := strings.ToLower(w.Text), t.Peek()
		v, err := t.Integer(w.Text, 0, 1<<30)
		if err != nil {
			return err
		}
		switch {
		case key == "nodes":
			nodes = v
		case key == "tiers":
			if tiers = v; v != 2 && v != 3 {
				return unsupported(t, place, "a topology of other than two or three tiers")
			}
		case key == "podsize":
			pod = v
		case key == "tier":
			if at = v; v > 2 || v == 2 && tiers == 2 {
				return t.Fail(place, "tier %d: write 0 to %d", v, max(1, tiers-1))
			}
		default:
			if err := of[max(0, at)].set(t, w, key, at, v); err != nil {
				return err
			}
		}
	}
	return x.build(t, nodes, pod, tiers, &of)
}

// set assigns a value to a key of a tier. Error: the key is unknown, or comes before the first Tier.
func (r *tier) set(t *wordList, w word, key string, at, v int64) error {
	if at < 0 {
		return t.Fail(w, "%s comes before the first Tier: write \"Tier 0\" before it",
			termtext.Quote(w.Text, 40))
	}
	switch key {
	case "downlink_speed_gbps":
		r.gbps = v
	case "radix_down":
		r.down = v
	case "radix_up":
		r.up = v
	case "downlink_latency_ns":
		r.downLatency = v
	case "switch_latency_ns":
		r.latency = v
	case "oversubscribed":
		r.oversubscribed = v
	case "bundle":
		if v > 1 {
			return unsupported(t, w, "several links between two switches")
		}
	case "queue_up", "queue_down":
		return unsupported(t, w, "a queue size of a tier")
	default:
		return t.Fail(w, "%s is not a key of a topology: write Downlink_speed_Gbps, Radix_Down, Radix_Up, "+
			"Downlink_Latency_ns or Switch_Latency_ns", termtext.Quote(w.Text, 40))
	}
	return nil
}

// build makes the network from the keys of its tiers.
func (x *HtsimScenario) build(t *wordList, nodes, pod, tiers int64, of *[3]tier) error {
	leaf, spine := of[0], of[1]
	switch {
	case tiers == 0:
		return t.Fail(t.End, "no Tiers: write \"Tiers 2\"")
	case nodes < 1 || leaf.down < 1 || leaf.up < 1 || spine.down < 1 || leaf.gbps < 1 || spine.gbps < 1:
		return t.Fail(t.End, "Nodes, Radix_Down, Radix_Up of tier 0, Radix_Down of tier 1 and "+
			"Downlink_speed_Gbps of both must be given")
	case nodes%leaf.down != 0:
		return t.Fail(t.End, "%d nodes do not fill switches of Radix_Down %d: write a multiple", nodes,
			leaf.down)
	case leaf.downLatency < 1 || spine.downLatency < 1:
		return t.Fail(t.End, "Downlink_Latency_ns of both tiers must be at least 1: windows of simulation "+
			"are as long as the least delay")
	}
	leaves, below := nodes/leaf.down, nodes/leaf.down
	if tiers == 3 {
		if pod < 1 || nodes%pod != 0 || pod%leaf.down != 0 {
			return t.Fail(t.End,
				"Podsize %d: write a multiple of Radix_Down %d of tier 0 that divides %d nodes", pod,
				leaf.down, nodes)
		}
		below = pod / leaf.down
	}
	if spine.down != below {
		return t.Fail(t.End, "tier 1 has Radix_Down %d, and there are %d switches below: write Radix_Down %d",
			spine.down, below, below)
	}
	x.Network = uec.Network{Leaves: int(leaves), PerLeaf: int(leaf.down), Spines: int(leaf.up),
		HostRate: leaf.gbps * 1e9, SpineRate: spine.gbps * 1e9,
		HostDelay:   units.Time(leaf.downLatency) * units.Nanosecond,
		SpineDelay:  units.Time(spine.downLatency) * units.Nanosecond,
		LeafLatency: units.Time(leaf.latency) * units.Nanosecond, SpineLatency: units.Time(spine.latency) *
			units.Nanosecond}
	if tiers == 3 {
		return x.cores(t, int(nodes/pod), &spine, &of[2])
	}
	return nil
}

// cores adds the third tier, which joins pods.
func (x *HtsimScenario) cores(t *wordList, pods int, spine, core *tier) error {
	switch {
	case core.gbps < 1 || core.downLatency < 1 || spine.up < 1:
		return t.Fail(t.End,
			"Radix_Up of tier 1, Downlink_speed_Gbps and Downlink_Latency_ns of tier 2 must be given")
	case core.down != int64(pods):
		return t.Fail(t.End, "tier 2 has Radix_Down %d, and there are %d pods below: write Radix_Down %d",
			core.down, pods, pods)
	}
	n := &x.Network
	n.Pods, n.Cores, n.CoreRate = pods, n.Spines*int(spine.up), core.gbps*1e9
	n.CoreDelay, n.CoreLatency = units.Time(core.downLatency)*units.Nanosecond,
		units.Time(core.latency)*units.Nanosecond
	return nil
}

func unsupported(t *wordList, w word, what string) error {
	return &packet.UnsupportedError{What: what, Found: fmt.Sprintf("%s:%d:%d: %s", t.Name, w.Line, w.Col,
		w.Text)}
}

// trigger starts flows when other flows end.
type trigger struct {
	feeds, starts []int32 // feeds: flows whose ends it counts
	count         int64   // ends needed, of a barrier
	again         bool    // multishot: each end of a flow of feeds starts the next flow of starts
	known         bool
	place         word
}

// matrix is the state of reading a connection matrix.
type matrix struct {
	x        *HtsimScenario
	t        *wordList
	hosts    int64  // number of hosts that the matrix announces, else the topology's
	ends     []word // by flow: the word that names its two hosts, for errors
	triggers map[int64]*trigger
	order    []int64
}

// readMatrix reads the announced numbers of nodes, connections and triggers, and a line for each.
func (x *HtsimScenario) readMatrix(t *wordList) error {
	m := &matrix{x: x, t: t, hosts: int64(x.Network.Hosts()), triggers: map[int64]*trigger{}}
	conns, trigs, defined, heads := int64(-1), int64(0), int64(0), map[string]int{}
	for !t.Done() {
		w, err := t.Take("a line")
		if err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(w.Text, "#"):
			for !t.Done() && t.Peek().Line == w.Line {
				t.Take("")
			}
		case heads[w.Text] > 0:
			err = t.Fail(w, "%s is in line %d already: write one", w.Text, heads[w.Text])
		case w.Text == "Nodes":
			heads[w.Text], err = w.Line, m.readNodes(w)
		case w.Text == "Connections":
			heads[w.Text] = w.Line
			conns, err = t.Integer("Connections", 0, 1<<24)
		case w.Text == "Triggers":
			heads[w.Text] = w.Line
			trigs, err = t.Integer("Triggers", 0, 1<<24)
		case w.Text == "Failures" || w.Text == "failure":
			return unsupported(t, w, "a failed link")
		case w.Text == "trigger":
			defined++
			err = m.readTrigger(w)
		default:
			err = m.readConnection(w)
		}
		if err != nil {
			return err
		}
	}
	if conns != int64(len(x.Flows)) || trigs != defined {
		return t.Fail(t.End,
			"%d connections and %d triggers, where %d and %d are announced: correct Connections or Triggers",
			len(x.Flows), defined, max(0, conns), trigs)
	}
	return m.join()
}

// readNodes reads the number of hosts; all connections, before and after this line, must stay below it.
func (m *matrix) readNodes(line word) (err error) {
	most := int64(m.x.Network.Hosts())
	if m.hosts, err = m.t.Integer("Nodes", 1, 1<<30); err == nil && m.hosts > most {
		return m.t.Fail(line, "%d nodes, and the topology has %d: write at most that", m.hosts, most)
	}
	for i := range m.x.Flows {
		if f := &m.x.Flows[i]; err == nil && int64(max(f.Src, f.Dst)) >= m.hosts {
			return m.between(m.ends[i])
		}
	}
	return err
}

// between returns the error for a connection whose two hosts are invalid.
func (m *matrix) between(ends word) error {
	return m.t.Fail(ends, "%s: write SRC->DST of two of the hosts 0 to %d", termtext.Quote(ends.Text, 40),
		m.hosts-1)
}

func (m *matrix) trigger(id int64, w word) *trigger {
	g := m.triggers[id]
	if g == nil {
		g = &trigger{place: w}
		m.triggers[id] = g
		m.order = append(m.order, id)
	}
	return g
}

// readTrigger reads "id N oneshot", "id N multishot" or "id N barrier count N".
func (m *matrix) readTrigger(line word) error {
	var g *trigger
	barrier, again, count := false, false, int64(0)
	for !m.t.Done() && m.t.Peek().Line == line.Line {
		w, err := m.t.Take("a word of a trigger")
		if err != nil {
			return err
		}
		switch w.Text {
		case "id":
			var id int64
			if id, err = m.t.Integer("the id of a trigger", 1, 1<<31); err == nil {
				g = m.trigger(id, w)
			}
		case "count":
			count, err = m.t.Integer("the count of a trigger", 1, 1<<24)
		case "oneshot":
		case "barrier":
			barrier = true
		case "multishot":
			again = true
		default:
			return m.t.Fail(w, "%s: write id, oneshot, multishot, barrier or count",
				termtext.Quote(w.Text, 40))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case g == nil || barrier && count == 0:
		return m.t.Fail(line, "a trigger needs an id, and a barrier a count")
	case g.known:
		return m.t.Fail(line, "a trigger of this id is defined already: write one")
	}
	g.known, g.count, g.again = true, count, again
	return nil
}

// readConnection reads "A->B id N start PS size BYTES", with trigger N instead of start, and
// send_done_trigger N.
func (m *matrix) readConnection(line word) error {
	src, dst, ok := strings.Cut(line.Text, "->")
	a, errA := strconv.ParseInt(src, 10, 32)
	b, errB := strconv.ParseInt(dst, 10, 32)
	if !ok || errA != nil || errB != nil || a < 0 || b < 0 || a >= m.hosts || b >= m.hosts || a == b {
		return m.between(line)
	}
	index := int32(len(m.x.Flows))
	f := uec.Flow{Src: int32(a), Dst: int32(b), ID: uint32(index) + 1}
	begins := false
	for !m.t.Done() && m.t.Peek().Line == line.Line {
		w, err := m.t.Take("a word of a connection")
		if err != nil {
			return err
		}
		var v int64
		switch w.Text {
		case "id":
			v, err = m.t.Integer("the id of a connection", 1, 1<<31)
			f.ID = uint32(v)
		case "start":
			var ps float64 // the peer reads the start time with single precision (connection_matrix.cpp)
			ps, err = m.t.Number("the start of a connection in ps", 0, 1e15)
			f.Start, begins = units.Time(float32(ps)), true
		case "size":
			f.Bytes, err = m.t.Integer("the size of a connection", 1, 1<<40)
		case "trigger":
			v, err = m.t.Integer("a trigger", 1, 1<<31)
			m.trigger(v, w).starts = append(m.trigger(v, w).starts, index)
			begins = true
		case "send_done_trigger":
			v, err = m.t.Integer("a trigger", 1, 1<<31)
			m.trigger(v, w).feeds = append(m.trigger(v, w).feeds, index)
		case "prio":
			_, err = m.t.Integer("a priority", 0, 1<<31)
		case "recv_done_trigger", "msg":
			return unsupported(m.t, w, "a connection with "+w.Text)
		default:
			return m.t.Fail(w, "%s: write id, start, size, trigger or send_done_trigger",
				termtext.Quote(w.Text, 40))
		}
		if err != nil {
			return err
		}
	}
	if !begins || f.Bytes == 0 {
		return m.t.Fail(line, "a connection needs a size, and a start or a trigger")
	}
	m.x.Flows, m.ends = append(m.x.Flows, f), append(m.ends, line)
	return nil
}

// join turns triggers into dependencies and pools.
func (m *matrix) join() error {
	for _, id := range m.order {
		g := m.triggers[id]
		switch {
		case !g.known:
			return m.t.Fail(g.place, "trigger %d is not defined: write \"trigger id %d oneshot\"", id, id)
		case len(g.starts) > 0 && len(g.feeds) == 0:
			return m.t.Fail(g.place, "trigger %d starts flows, and no flow sets it off", id)
		case g.again:
			m.x.Pools = append(m.x.Pools, g.starts)
			for _, f := range g.feeds {
				m.x.Flows[f].Pool = len(m.x.Pools)
			}
			continue
		case g.count == 0 && len(g.feeds) > 1:
			return unsupported(m.t, g.place, "a trigger that the first of several flows sets off")
		case g.count > 0 && g.count != int64(len(g.feeds)):
			return unsupported(m.t, g.place, "a barrier of fewer flows than set it off")
		}
		for _, s := range g.starts {
			m.x.Flows[s].Deps = append(m.x.Flows[s].Deps, g.feeds...)
		}
	}
	return nil
}
