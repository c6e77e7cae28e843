package packetrun

import (
	"os"
	"path"
	"strings"
	"testing"
)

// edited reads the example's files, with a line replaced by another, and one file by a text.
func edited(line, by, file, text string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if path.Base(name) == file {
			return []byte(text), nil
		}
		data, err := os.ReadFile(name)
		return []byte(strings.Replace(string(data), line, by, 1)), err
	}
}

// TestNeverBegun: flows that wait for each other are named as such, with either simulator's files; nothing
// was lost.
func TestNeverBegun(t *testing.T) {
	cycle := edited("", "", "flow.txt", "2\n0 5 3 100 1000 2.0 1 1\n2 5 3 100 1000 2.0 1 0\n")
	r, err := NS3(example, Options{Read: cycle, Seed: 1, Workers: 1, Compat: "ns3", Warn: t.Logf})
	if err != nil ||
		r.Unfinished !=
			"2 flows did not end, the first is flow 0: flows that wait for each other never begin" {
		t.Errorf("%v, %+v", err, r)
	}
	const matrix = "Nodes 32\nConnections 2\nTriggers 2\n" +
		"0->16 id 1 trigger 1 size 1000 send_done_trigger 2\n" +
		"1->17 id 2 trigger 2 size 1000 send_done_trigger 1\n" +
		"trigger id 1 oneshot\ntrigger id 2 oneshot\n"
	x := Htsim{Matrix: "../../testdata/packets/perm.cm", Topo: "../../testdata/packets/leafspine.topo",
		CC: "nscc", Balance: "mixed"}
	h, err := RunHtsim(x, Options{Read: edited("", "", "perm.cm", matrix), Seed: 1, Workers: 1})
	if err != nil || h.Unfinished != "2 flows did not end: the triggers that they wait for never fire" {
		t.Errorf("%v, %+v", err, h)
	}
}

// TestGoBackZero: a flow whose size is no multiple of what go-back-0 goes back to does not end, which is
// said; with a timeout alone it would be sent again for ever; and another loss recovery replaces go-back-0.
func TestGoBackZero(t *testing.T) {
	run := func(v Override) (*Report, error) {
		odd := edited("L2_BACK_TO_ZERO 0", "L2_BACK_TO_ZERO 1", "flow.txt", "1\n0 5 3 100 10001 2.0\n")
		return NS3(example, Options{Read: odd, Seed: 1, Workers: 1, Compat: "ns3", Override: v, Warn: t.Logf})
	}
	r, err := run(Override{})
	if err != nil || !strings.Contains(r.Unfinished,
		"a flow of 10001 bytes, no multiple of L2_CHUNK_SIZE, never ends") {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := run(Override{TimeoutUs: 100}); err == nil || !strings.Contains(err.Error(),
		"add Retries, or Repair gbn") {
		t.Errorf("a timeout without an end: %v", err)
	}
	if r, err := run(Override{TimeoutUs: 100, Retries: 3}); err != nil || !strings.Contains(r.Unfinished,
		"gave up") {
		t.Errorf("%v, %+v", err, r)
	}
	for _, repair := range []string{"gbn", "sr", "trim"} {
		if r, err := run(Override{Repair: repair, TimeoutUs: 100}); err != nil || r.Unfinished != "" {
			t.Errorf("%s: %v, %+v", repair, err, r)
		}
	}
}

// TestNeverAcknowledged: a flow that is shorter than the interval of acknowledgements does not end, which is
// said: nothing was lost. A timeout ends it.
func TestNeverAcknowledged(t *testing.T) {
	run := func(v Override) (*Report, error) {
		short := edited("L2_ACK_INTERVAL 1", "L2_ACK_INTERVAL 5000", "flow.txt",
			"3\n2 5 3 100 4000 2.0\n0 5 3 100 4001 2.0\n1 5 3 100 9000 2.0\n")
		return NS3(example, Options{Read: short, Seed: 1, Workers: 1, Compat: "ns3", Override: v,
			Warn: t.Logf})
	}
	r, err := run(Override{})
	if err != nil || !strings.Contains(r.Unfinished, "1 flows did not end, the first is flow 1: with "+
		"L2_ACK_INTERVAL 5000 nothing acknowledges the end of a flow of 4001 bytes") {
		t.Errorf("%v, %+v", err, r)
	}
	for _, v := range []Override{{TimeoutUs: 100}, {Repair: "sr"}} {
		if r, err = run(v); err != nil || r.Unfinished != "" {
			t.Errorf("%+v: %v, %+v", v, err, r)
		}
	}
}

// TestStormWithLosses: lost frames are no reason beside a storm where a timeout retransmits them.
func TestStormWithLosses(t *testing.T) {
	for timeout, want := range map[float64]string{
		0:   "a pause storm blocks 0 > 7, and no timeout retransmits lost frames",
		100: "a pause storm blocks 0 > 7"} {
		v := Override{CC: "none", Repair: "trim", Faults: []string{"0-7:storm", "2-8:loss=0.01"},
			TimeoutUs: timeout, Retries: int(timeout)}
		r, err := runExample(t, v)
		if err != nil || r.Lost == 0 || !strings.HasSuffix(r.Unfinished, want) {
			t.Errorf("timeout %g: %v, %d lost, %q, want %q", timeout, err, r.Lost, r.Unfinished, want)
		}
	}
}

// TestLeastRate: a configuration whose rates may fall to 0 is refused by name, but not where they do not
// count.
func TestLeastRate(t *testing.T) {
	run := func(cc string) error {
		_, err := NS3(example, Options{Read: edited("MIN_RATE 100Mb/s", "MIN_RATE 0Mb/s", "", ""), Seed: 1,
			Workers: 1, Compat: "ns3", Override: Override{CC: cc}, Warn: t.Logf})
		return err
	}
	if err := run(""); err == nil || !strings.Contains(err.Error(), "config.txt: MIN_RATE 0 with DCQCN") {
		t.Errorf("got %v", err)
	}
	if err := run("none"); err != nil {
		t.Error(err)
	}
}

// TestRoCENetworkIsChecked: a topology of more links than fit is refused before it is laid out.
func TestRoCENetworkIsChecked(t *testing.T) {
	x := Htsim{Matrix: "../../testdata/packets/perm.cm", Topo: "../../testdata/packets/leafspine.topo",
		CC: "roce", Balance: "ecmp"}
	_, err := RunHtsim(x, Options{Read: edited("Radix_Up 8", "Radix_Up 1000000000", "", ""), Seed: 1,
		Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "1000000000 spines: write 1 to 32768") {
		t.Errorf("%v", err)
	}
}
