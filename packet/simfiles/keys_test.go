package simfiles

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/units"
)

// usual is the keys of a run of DCQCN as the simulator's run.py writes them.
const usual = "ENABLE_QCN 1\nPACKET_PAYLOAD_SIZE 1000\nTOPOLOGY_FILE topo.txt\n" +
	"FLOW_FILE flow.txt\nSIMULATOR_STOP_TIME 30\nCC_MODE 1\n" +
	"ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\n" +
	"RP_TIMER 300\nEWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\n" +
	"MIN_RATE 100Mb/s\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nHAS_WIN 0\n" +
	"KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE 32\n"

// star8 is eight hosts that send to a ninth at one switch; cable is how they are joined.
func star8(cable string) string {
	var b strings.Builder
	b.WriteString("10 1 9\n9\n")
	for i := range 9 {
		fmt.Fprintf(&b, "%d 9 %s\n", i, cable)
	}
	return b.String()
}

// incast8 is their flows, of 200 kB each; flow i has priority 1+i%priorities, or 3 with one.
func incast8(priorities int) string {
	var b strings.Builder
	b.WriteString("8\n")
	for i := range 8 {
		p := 3
		if priorities > 1 {
			p = 1 + i%priorities
		}
		fmt.Fprintf(&b, "%d 8 %d 100 200000 2.0\n", i, p)
	}
	return b.String()
}

// keyCase is a scenario with more keys, and what must hold of it beside the base.
type keyCase struct {
	name, keys, topo, flow string
	good                   func(x *NS3Scenario, r *packet.Result) bool
}

func keyCases(cable string, base *packet.Result) []keyCase {
	return []keyCase{
		{"no marks without ECN", "ENABLE_QCN 0\n", star8(cable), incast8(1),
			func(_ *NS3Scenario, r *packet.Result) bool { return r.Marks == 0 && r.Stall == nil }},
		{"a lower KMAX_MAP marks more", "KMAX_MAP 1 100000000000 500\n", star8(cable), incast8(1),
			func(_ *NS3Scenario, r *packet.Result) bool { return r.Marks > 2*base.Marks }},
		{"all are marked above KMAX_MAP, also below KMIN_MAP",
			"KMIN_MAP 1 100000000000 4000\nKMAX_MAP 1 100000000000 500\n", star8(cable), incast8(1),
			func(_ *NS3Scenario, r *packet.Result) bool { return r.Marks > 2*base.Marks }},
		{"rates that no link has do not count", "KMIN_MAP 2 100000000000 400 25000000000 1\n", star8(cable),
			incast8(1), func(_ *NS3Scenario, r *packet.Result) bool { return span(r) == span(base) }},
		{"fewer acknowledgements", "L2_ACK_INTERVAL 20000\n", star8(cable), incast8(1),
			func(_ *NS3Scenario, r *packet.Result) bool {
				return r.Stall == nil && r.FrameHops < base.FrameHops-200
			}},
		{"none before so many bytes: no flow ends", "L2_ACK_INTERVAL 2000000\nL2_CHUNK_SIZE 3000\n",
			star8(cable), incast8(1), func(_ *NS3Scenario, r *packet.Result) bool {
				return r.Stall != nil && r.Stall.Unfinished == 8
			}},
		{"a small buffer pauses", "BUFFER_SIZE 1\n", star8(cable), incast8(1),
			func(_ *NS3Scenario, r *packet.Result) bool { return r.Pauses > 0 && r.Drops == 0 }},
		// Each is too short for a mark; the deepest queue is that of a port, of all priorities.
		{"priorities have queues of their own", "", star8(cable), incast8(4),
			func(_ *NS3Scenario, r *packet.Result) bool {
				return r.Marks == 0 && r.PeakQueue > base.PeakQueue && r.Stall == nil
			}},
		{"ACK_HIGH_PRIO is of hosts alone", "ACK_HIGH_PRIO 1\n", star8(cable), incast8(1),
			func(x *NS3Scenario, r *packet.Result) bool {
				return x.Config.AckHold == -1 && !x.Config.AckHigh && span(r) == span(base)
			}},
		{"RATE_BOUND 0 does not pace", "RATE_BOUND 0\n", star8(cable), incast8(1),
			func(_ *NS3Scenario, r *packet.Result) bool { return r.PeakQueue > base.PeakQueue }},
		{"GLOBAL_T 2 is not 1: windows by pair", "HAS_WIN 1\nGLOBAL_T 2\n", star8(cable), incast8(1),
			func(x *NS3Scenario, r *packet.Result) bool { return x.Flows[0].Window > 0 && r.Stall == nil }},
		{"HPCC, a rate a hop, feedback by sample",
			"CC_MODE 3\nHAS_WIN 1\nVAR_WIN 1\nMULTI_RATE 1\nSAMPLE_FEEDBACK 1\nU_TARGET 0.9\n", star8(cable),
			incast8(1), func(x *NS3Scenario, r *packet.Result) bool {
				return r.Stall == nil && r.Marks == 0 && r.PeakQueue < base.PeakQueue/2 &&
					x.Config.Frames.Header == 90
			}},
		{"what is monitored changes nothing", "QLEN_MON_FILE q.txt\n" +
			"QLEN_MON_START 2000000000\nQLEN_MON_END 2010000000\nENABLE_TRACE 1\nPAUSE_TIME 5\n",
			star8(cable), incast8(1), func(_ *NS3Scenario, r *packet.Result) bool {
				return span(r) == span(base)
			}},
		{"the end of the simulation", "SIMULATOR_STOP_TIME 2.00001\n", star8(cable), incast8(1),
			func(_ *NS3Scenario, r *packet.Result) bool { return r.Stall != nil && r.Stall.Stopped }},
		{"delays in picoseconds", "", star8("100Gb/s 1000000ps 0"), incast8(1),
			func(_ *NS3Scenario, r *packet.Result) bool { return span(r) == span(base) }},
		{"cables that lose", "", star8("100Gbps 1us 0.002"), incast8(1),
			func(x *NS3Scenario, r *packet.Result) bool {
				return r.Lost > 0 && r.Retransmitted > 0 && !x.Network.Cables[0].SharedLoss
			}},
		// A hundred frames of 83 ns, an acknowledgement of 4 ns, two ways.
		{"two hosts without a switch", "", "2 0 1\n0 1 " + cable + "\n", "1\n0 1 3 100 100000 2.0\n",
			func(_ *NS3Scenario, r *packet.Result) bool { return span(r) == 100*83+1000+4+1000 }},
		{"of parallel cables the last counts", "", "5 2 5\n2 3\n0 2 " + cable + "\n1 3 " + cable +
			"\n2 3 100Gbps 9us 0\n2 3 " + cable + "\n4 2 " + cable + "\n", "1\n0 1 3 100 1000 2.0\n",
			func(_ *NS3Scenario, r *packet.Result) bool { return span(r) == 3*83+3*4+6*1000 }},
		// Over one cable of 5 us, and not over two of 1 us: hops count, not times.
		{"the path of the fewest hops", "", "5 3 5\n2 3 4\n0 2 " + cable + "\n1 3 " + cable +
			"\n2 3 100Gbps 5us 0\n2 4 " + cable + "\n4 3 " + cable + "\n", "1\n0 1 3 100 1000 2.0\n",
			func(_ *NS3Scenario, r *packet.Result) bool { return span(r) == 3*83+3*4+2*7000 }},
		{"flows that wait for flows", "", star8(cable), "2\n0 8 3 100 1000 2.0 1 1\n1 8 3 100 1000 2.0\n",
			func(_ *NS3Scenario, r *packet.Result) bool {
				return r.Flows[0].Start == r.Flows[1].End+units.Nanosecond
			}},
	}
}

// TestKeys: what else the simulator's files may say acts as its source has it.
func TestKeys(t *testing.T) {
	const cable = "100Gbps 1000ns 0"
	play := func(keys, topo, flow string) (*NS3Scenario, *packet.Result) {
		files := map[string]string{"config.txt": usual + keys, "topo.txt": topo, "flow.txt": flow}
		x, err := LoadNS3("config.txt", func(name string) ([]byte, error) { return []byte(files[name]), nil })
		if err != nil {
			t.Fatalf("%s: %v", keys, err)
		}
		x.Config.Seed = 1
		return x, run(t, x)
	}
	_, base := play("", star8(cable), incast8(1))
	if base.Marks == 0 || base.Pauses > 0 || base.Stall != nil {
		t.Fatalf("%d marks, %d pauses: some and none are wanted", base.Marks, base.Pauses)
	}
	for _, c := range keyCases(cable, base) {
		if x, r := play(c.keys, c.topo, c.flow); !c.good(x, r) {
			t.Errorf("%s: %d ns for %d, %d marks for %d, %d pauses, %d lost, queue %d for %d, %d hops for "+
				"%d, %v", c.name, span(r), span(base), r.Marks, base.Marks, r.Pauses, r.Lost, r.PeakQueue,
				base.PeakQueue, r.FrameHops, base.FrameHops, r.Stall)
		}
	}
}
