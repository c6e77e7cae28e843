package packetrun

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// peers are scenarios with the times that the rebuilt HPCC simulator gave: a cable that goes down leaves a
// queue pair for ever waiting for its window; rates
// of links that HPCC's telemetry has no code for; few frames, which meet at one instant; transmissions
// that take longer than a cable, and end when a frame or a resume comes, where some find no room; losses
// drawn among flows that begin at one instant, in the order in which those before them ended;
// a second NACK that sends a sender back once more, behind what is acknowledged later; frames that come to
// a receiver when their flow has ended, and a sender that goes on to send then;
// frames that take less than a ns, so that their transmission
// ends when it begins, but after flows that begin then; a decrease of the rate at the ns of an ACK that was
// sent before its timer was set.
const peers = "../../testdata/packets/peer/*/fct.csv"

// TestPeers: all flows end as with the peer, to the ns, and those that do not end there do not end here.
func TestPeers(t *testing.T) {
	times, err := filepath.Glob(peers)
	if err != nil || len(times) < 4 {
		t.Fatal(times, err)
	}
	for _, file := range times {
		config, want := filepath.Join(filepath.Dir(file), "config.txt"), peerTimes(t, file)
		r, err := NS3(config, Options{Read: os.ReadFile, Seed: 1, Workers: 1, Compat: "ns3", Warn: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Flows {
			at, ends := want[[3]int{int(f.Src), int(f.Dst), int(f.SrcPort)}]
			switch {
			case ends != (f.FctNs != nil):
				t.Errorf("%s: flow %d to %d: ends: %v there, %v here", config, f.Src, f.Dst, ends, !ends)
			case ends && *f.FctNs != at:
				t.Errorf("%s: flow %d to %d: %d ns there, %d here", config, f.Src, f.Dst, at, *f.FctNs)
			}
		}
	}
}

// TestPeersAnyRates: with frames of Ethernet telemetry carries the rates of links without codes.
func TestPeersAnyRates(t *testing.T) {
	config := "../../testdata/packets/peer/unknown_rate/config.txt"
	coded, err := NS3(config, Options{Read: os.ReadFile, Seed: 1, Workers: 1, Compat: "ns3", Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	told, err := NS3(config, Options{Read: os.ReadFile, Seed: 1, Workers: 1, Compat: "none", Warn: t.Logf})
	if err != nil || told.MakespanNs >= coded.MakespanNs {
		t.Errorf("%d ns with rates as they are, %d as the peer tells them: %v", told.MakespanNs,
			coded.MakespanNs, err)
	}
}

// peerTimes reads when flows ended.
func peerTimes(t *testing.T, name string) map[[3]int]int64 {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	times := map[[3]int]int64{}
	at := slices.Index(rows[0], "fct_ns")
	for _, row := range rows[1:] {
		var v [4]int
		for i, k := range []int{0, 1, 2, at} {
			if v[i], err = strconv.Atoi(row[k]); err != nil {
				t.Fatal(err)
			}
		}
		times[[3]int{v[0], v[1], v[2]}] = int64(v[3])
	}
	return times
}

// TestPeakOfPriorities: the deepest queue is that of all priorities of a port, as the peer watches it.
func TestPeakOfPriorities(t *testing.T) {
	config := "../../testdata/packets/peer/cable_down/config.txt"
	r, err := NS3(config, Options{Read: os.ReadFile, Seed: 1, Workers: 1, Compat: "ns3:exact", Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if r.PeakQueueBytes != 248718 || r.PeakLink != [2]int32{13, 7} {
		t.Errorf("%d bytes at %v", r.PeakQueueBytes, r.PeakLink)
	}
}
