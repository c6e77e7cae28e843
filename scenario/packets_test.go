package scenario

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// framed is a run over a leaf-spine network of two hosts that blocks 4:1.
func framed(t *testing.T, change func(*Spec)) (*Result, error) {
	t.Helper()
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: 1,
		Oversub: 4, Latency: 0.3})
	if err != nil {
		t.Fatal(err)
	}
	s := small("alltoall", "2M")
	s.Machine.Nodes = []Nodes{{Topo: "a.xml", Count: 2}}
	s.Engine.Launch, s.Engine.NoProof = "graph", true
	s.Network.Model = "packet"
	change(&s)
	thin := strings.Replace(string(n.Format()), `"switches"`,
		`"packets": {"buffer_kb": 700, "cc": "none"}, "switches"`, 1)
	return Run(context.Background(), s, Options{Files: fstest.MapFS{"a.xml": {Data: builtin.DGXH100()},
		"net.json": {Data: n.Format()}, "thin.json": {Data: []byte(thin)},
		"small.json":   {Data: []byte(strings.Replace(thin, "700", "64", 1))},
		"thin100.json": {Data: []byte(strings.ReplaceAll(thin, `"gbit":400`, `"gbit":100`))},
		"sprayed.json": {
			Data: []byte(strings.Replace(string(n.Format()), `"switches"`,
				`"packets": {"preset": "spectrum-x"}, "switches"`, 1))},
		"ultra.json": {
			Data: []byte(strings.Replace(string(n.Format()), `"switches"`,
				`"packets": {"preset": "ultra-ethernet"}, "switches"`, 1))},
		"bad.json": {
			Data: []byte(strings.Replace(string(n.Format()), `"switches"`,
				`"packets": {"cc": "tcp"}, "switches"`, 1))},
		"none.json": {
			Data: []byte(strings.Replace(string(n.Format()), `"switches"`,
				"\"packets\": {\n\"preset\": \"nobody\"}, \"switches\"", 1))}}})
}

func us(t *testing.T, change func(*Spec)) (float64, *Facts) {
	t.Helper()
	r, err := framed(t, change)
	if err != nil {
		t.Fatal(err)
	}
	return r.Rows[0].Out.Time.Micros(), &r.Rows[0].Facts
}

// TestBufferThatIsTooSmall: a switch without memory beyond what its ports keep is named.
func TestBufferThatIsTooSmall(t *testing.T) {
	for _, model := range []string{"packet", "hybrid"} {
		_, err := framed(t, func(s *Spec) { s.Network.Model, s.Network.Fabric = model, "small.json" })
		var small *sim.BufferError
		if !errors.As(err, &small) || small.Bytes != 64000 || small.Kept <= small.Bytes || small.Ports < 2 ||
			!strings.HasPrefix(small.Switch, "leaf") {
			t.Errorf("%s: %v, want a BufferError of a leaf", model, err)
		}
	}
	if _, err := framed(t, func(s *Spec) { s.Network.Fabric = "thin.json" }); err != nil {
		t.Error(err)
	}
}

// TestPackets: NCCL's messages frame by frame take as long as flows where nothing
// meets; where they meet, switches queue, mark or pause; the same input gives the
// same result; a hybrid agrees.
func TestPackets(t *testing.T) {
	ring := func(s *Spec) {
		s.Workload.Op, s.NCCL.Env, s.Engine.Jitter = "all_reduce", map[string]string{"NCCL_ALGO": "Ring"},
			"off"
	}
	flow, none := us(t, func(s *Spec) { ring(s); s.Network.Model = "" })
	frames, met := us(t, ring)
	hybrid, _ := us(t, func(s *Spec) { ring(s); s.Network.Model = "hybrid" })
	if none.Congestion != nil || met.Congestion == nil {
		t.Fatalf("facts of flows %v, of frames %v", none.Congestion, met.Congestion)
	}
	if d := frames/flow - 1; d > 0.05 || d < -0.05 || met.Congestion.Pauses > 0 || met.Congestion.Marked > 0 {
		t.Errorf("a ring on one switch: %.2f us frame by frame, %.2f as flows, %+v", frames, flow,
			met.Congestion)
	}
	if d := hybrid/frames - 1; d > 0.01 || d < -0.01 {
		t.Errorf("a ring: hybrid %.2f us, frame by frame %.2f", hybrid, frames)
	}
	blocks := func(s *Spec) { s.Network.Fabric = "net.json" }
	a, x := us(t, blocks)
	if b, y := us(t, blocks); a != b || x.Congestion.Marked != y.Congestion.Marked {
		t.Errorf("the same input: %.3f and %.3f us", a, b)
	}
	if x.Congestion.Marked == 0 || len(x.Congestion.Ports) == 0 || x.Congestion.Ports[0].Inputs < 2 {
		t.Errorf("4:1: %+v", x.Congestion)
	}
	_, thin := us(t, func(s *Spec) { s.Network.Fabric = "thin.json" })
	if c := thin.Congestion; c.Pauses == 0 || c.PausedUs == 0 || c.PausedPort == "" || c.Marked != 0 ||
		c.Dropped != 0 {
		t.Errorf("small buffers without congestion control: %+v", c)
	}
	seen(t, thin.Congestion)
	h, z := us(t, func(s *Spec) { s.Network.Fabric, s.Network.Model = "net.json", "hybrid" })
	if h != a || z.Congestion.Marked != x.Congestion.Marked { // all of it goes frame by frame
		t.Errorf("4:1: hybrid %.3f us, frame by frame %.3f, %+v", h, a, z.Congestion)
	}
	// Frames that choose their routes leave no port more than its share.
	if s, y := us(t, func(s *Spec) { s.Network.Fabric = "sprayed.json" }); s >= a ||
		y.Congestion.Resent > 0 || y.Congestion.Dropped > 0 {
		t.Errorf("adaptive routing: %.2f us, hashed %.2f, %+v", s, a, y.Congestion)
	}
	if n, _ := us(t, func(s *Spec) { s.Network.Fabric = "infiniband-ndr" }); n > a {
		t.Errorf("a network by name that does not block: %.2f us, one that does %.2f", n, a)
	}
	// Entropy of queue pairs, and losses repaired by NICs.
	if q, _ := us(t, func(s *Spec) {
		blocks(s)
		s.NCCL.Env = map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IB_SPLIT_DATA_ON_QPS": "1"}
	}); q == a {
		t.Errorf("4 queue pairs a connection: %.3f us as with one", q)
	}
	if _, lost := us(t, func(s *Spec) {
		s.Network.Faults = []string{"nic=node0/2:loss=0.02"}
	}); lost.Congestion.Dropped == 0 || lost.Congestion.Resent == 0 {
		t.Errorf("a lossy port: %+v", lost.Congestion)
	}
}

// seen: what paused ports is named, with who sends over the port behind it and who
// waits for it without need.
func seen(t *testing.T, c *congestion.Facts) {
	t.Helper()
	port := &c.Ports[0]
	var sum int64
	for _, s := range port.From {
		sum += s.Bytes
	}
	if len(port.From) < 2 || port.FromAll < len(port.From) || sum > port.Bytes ||
		port.FromAll == len(port.From) && sum < port.Bytes*99/100 {
		t.Errorf("%s carried %d B, of those it is from %d: %+v", port.Name, port.Bytes, sum, port.From)
	}
	if len(c.Stopped) == 0 || c.Stopped[0].Us <= 0 || !strings.Contains(c.Stopped[0].Behind, "→") {
		t.Errorf("paused: %+v", c.Stopped)
	}
	for _, h := range c.Held {
		if h.Us <= 0 || strings.HasSuffix(h.Behind, "→"+h.To) || !strings.Contains(h.At, "→") {
			t.Errorf("head-of-line blocking: %+v", h)
		}
	}
}

// TestTimedFaults: storms, links that flap and what lasts for a time reach frames; what
// never ends is an error that names its cause.
func TestTimedFaults(t *testing.T) {
	with := func(faults ...string) func(s *Spec) {
		return func(s *Spec) {
			s.Network.Fabric, s.Network.Faults, s.Engine.Jitter = "net.json", faults, "off"
			s.NCCL.Env = map[string]string{"NCCL_IB_TIMEOUT": "8"}
		}
	}
	none, _ := us(t, with("nic=node0/2:slow=1@0-1"))
	storm, x := us(t, with("link=spine0~leaf0:storm@20-320"))
	if storm < none+50 || x.Congestion.PausedUs < 290 || x.Congestion.PausedUs > 310 ||
		x.Congestion.PausedPort != "spine0→leaf0" {
		t.Errorf("a storm of 300 us: %.2f us for %.2f, %+v", storm, none, x.Congestion.Stopped)
	}
	if flap, x := us(t, with("link=leaf0~spine0:flap=5/50@20-320")); x.Congestion.Dropped == 0 ||
		x.Congestion.Resent == 0 || flap == none {
		t.Errorf("a link that flaps: %.2f us for %.2f, %+v", flap, none, x.Congestion)
	}
	if slow, _ := us(t, with("link=leaf0~spine0:slow=4@20-320")); slow <= none {
		t.Errorf("a slow link: %.2f us for %.2f", slow, none)
	}
	_, err := framed(t, with("nic=node0/2:storm"))
	var stall *sim.StallError
	if !errors.As(err, &stall) || !stall.GaveUp() || !strings.Contains(err.Error(), "leaf0→node0/2") {
		t.Errorf("a storm without an end: %v", err)
	}
	if _, err := framed(t, func(s *Spec) {
		s.Network.Model, s.Network.Faults = "", []string{"nic=node0/2:storm"}
	}); err == nil || !strings.Contains(err.Error(), "--network packet") {
		t.Errorf("a storm of flows: %v", err)
	}
}

// TestTrimming: switches of Ultra Ethernet cut frames in place of pauses, hosts send them again,
// and frames that choose their routes one by one are through before queue pairs that keep theirs.
func TestTrimming(t *testing.T) {
	sprayed, _ := us(t, func(s *Spec) { s.Network.Fabric = "ultra.json" })
	for _, balance := range []string{"", "queue-pair"} {
		us, x := us(t, func(s *Spec) { s.Network.Fabric, s.Network.Balance = "ultra.json", balance })
		if c := x.Congestion; c.Trimmed == 0 || c.Pauses > 0 || c.Dropped > 0 || c.Resent < c.Trimmed*9/10 ||
			c.Resent > c.Trimmed*11/10 {
			t.Errorf("%q: %+v: frames are cut and sent again, nothing else", balance, c)
		}
		if balance != "" && us <= sprayed {
			t.Errorf("queue pairs that keep their routes take %.2f us, sprayed frames %.2f", us, sprayed)
		}
	}
}

// TestDeadlock: switches in a circle whose ports pause each other end in an error that
// names them, also as a hybrid; a watchdog dissolves it and is named.
func TestDeadlock(t *testing.T) {
	net, err := os.ReadFile("../testdata/packets/circle/net.json")
	if err != nil {
		t.Fatal(err)
	}
	node := builtin.Lookup("pcie-a100-4").XML()
	run := func(model, packets string) (*Result, error) {
		s := small("sendrecv", "2M")
		s.Machine.Nodes, s.Machine.GPUs = []Nodes{{Topo: "a.xml", Count: 5}}, 1
		s.Engine.NoProof, s.Network.Fabric, s.Network.Model, s.NCCL.Env = true, "net.json", model,
			map[string]string{"NCCL_IB_TIMEOUT": "10"}
		return Run(context.Background(), s,
			Options{Files: fstest.MapFS{"a.xml": {Data: node},
				"net.json": {Data: bytes.Replace(net, []byte(`"cc"`), []byte(packets+`"cc"`), 1)}}})
	}
	for _, model := range []string{"packet", "hybrid"} {
		_, err := run(model, "")
		var stall *sim.StallError
		if !errors.As(err, &stall) || stall.GaveUp() || !strings.Contains(err.Error(),
			"in a cycle: s0 > s1 > s2 > s3 > s4 > s0") {
			t.Errorf("%s: %v", model, err)
		}
	}
	r, err := run("packet", `"watchdog_us": 1000, `)
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Rows[0].Facts.Congestion; c.Watchdogs == 0 || len(c.WatchdogPorts) == 0 || c.Dropped == 0 ||
		c.Resent < c.Dropped || r.Rows[0].Out.Time < units.Millisecond {
		t.Errorf("a watchdog: %.1f us, %+v", r.Rows[0].Out.Time.Micros(), c)
	} else if len(c.Deadlocks) != 1 || len(c.Deadlocks[0].Nodes) != 5 || c.Deadlocks[0].AtUs <= 0 ||
		c.Deadlocks[0].AtUs > 1000 || !slices.ContainsFunc(c.Lines(), func(s string) bool {
		return strings.HasPrefix(s, "deadlock at ") && strings.HasSuffix(s, "s4 > s0")
	}) {
		t.Errorf("a deadlock that a watchdog dissolves: %+v", c.Deadlocks)
	}
	if r, err = run("", ""); err != nil || r.Rows[0].Out.Time <= 0 { // flows do not pause each other
		t.Errorf("as flows: %v", err)
	}
}

// TestLossless: pauses come in time on slow links, too, where a frame that holds a pause
// up and one that the neighbor has begun are more than three delays of the cable.
func TestLossless(t *testing.T) {
	_, x := us(t, func(s *Spec) { s.Network.Fabric = "thin100.json" })
	if c := x.Congestion; c.Pauses == 0 || c.Dropped > 0 || c.Resent > 0 {
		t.Errorf("links of 100 Gbit/s: %d pauses, %d frames lost", c.Pauses, c.Dropped)
	}
}

// TestPacketsRefused: what cannot be simulated frame by frame ends with an error of
// its type, those of a file with their places.
func TestPacketsRefused(t *testing.T) {
	for _, x := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Network.Model = "fluid" }, "network.model"},
		{func(s *Spec) { s.Network.Balance = "random" },
			"--balance: random is not one: write one of queue-pair, flowlet, packet"},
		{func(s *Spec) { s.Network.Model, s.Network.Balance = "", "packet" }, "network.balance packet"},
		{func(s *Spec) { s.Network.CC = "bbr" }, `--cc: "bbr" is not`},
		{func(s *Spec) { s.Network.Model, s.Network.CC = "", "none" }, "network.cc none"},
		{func(s *Spec) { s.Engine.Fold = "exact" }, "network.model packet: needs every rank"},
		{func(s *Spec) { s.Engine.Fidelity = "alpha" }, "network.model packet: needs every rank"},
		{func(s *Spec) { s.Network.Fabric, s.Network.Model = "spectrum-x", "hybrid" },
			"--network hybrid: frames of this fabric choose"},
		{func(s *Spec) { s.Network.Fabric = "bad.json" }, "bad.json:4:"},
		{func(s *Spec) { s.Network.Fabric = "none.json" }, "none.json:5:11: preset \"nobody\": write one of"},
	} {
		_, err := framed(t, x.change)
		var field *FieldError
		var in *fail.Error
		if err == nil || !strings.Contains(err.Error(), x.want) || !errors.As(err, &field) &&
			!errors.As(err, &in) {
			t.Errorf("%v (%T), want %s", err, err, x.want)
		}
	}
}
