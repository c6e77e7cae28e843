package packetrun

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/simfiles"
	"github.com/simccl/simccl/units"
)

// TestConversations: a traffic in, its flows out; options in, the settings that they replace out.
//
//	options [NAME]     options of network run, a case a line as "cc=hpcc timeout=50"; with NAME the lines
//	                   are values of it. The run is of DCQCN with two hosts at each of two switches, which
//	                   two cables join; "compat=none" has frames of RoCE
//	traffic KIND [hosts=4] [gbit=100] [bytes=] [load=] [span=us] [seed=1] [starts=us,us]
//	        flows between hosts at one switch, behind which one more host has no cable; starts are of flows
//	        that the traffic replaces. More than 12 flows are counted, with their bytes
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "options":
				var b strings.Builder
				for line := range strings.Lines(d.Input) {
					line = strings.TrimSpace(line)
					fmt.Fprintf(&b, "%s: %s\n", line, optionsOf(t, ruletest.Word(d, 0), line))
				}
				return b.String()
			case "traffic":
			default:
				d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			}
			flows, err := trafficOf(d)
			if err != nil {
				return "error: " + err.Error()
			}
			var b strings.Builder
			bytes := int64(0)
			for i, f := range flows {
				if bytes += f.Bytes; len(flows) <= 12 || i < 3 {
					fmt.Fprintf(&b, "%d to %d: %d bytes at %v, priority %d, port %d\n", f.Src, f.Dst, f.Bytes,
						f.Start, f.Priority, f.DstPort)
				}
			}
			if len(flows) > 12 {
				fmt.Fprintf(&b, "%d flows, %d bytes, the last at %v\n", len(flows), bytes,
					flows[len(flows)-1].Start)
			}
			return b.String()
		}
	})
}

func trafficOf(d *datadriven.TestData) ([]packet.Flow, error) {
	number := func(key, other string) float64 {
		v, _ := strconv.ParseFloat(ruletest.Value(d, key, other), 64)
		return v
	}
	hosts := int(number("hosts", "4"))
	x := &simfiles.NS3Scenario{}
	x.Network = packet.Network{Nodes: hosts + 2, Switch: make([]bool, hosts+2)}
	x.Network.Switch[hosts] = true
	for i := range hosts {
		x.Network.Cables = append(x.Network.Cables, packet.Cable{A: int32(i), B: int32(hosts),
			Rate: int64(number("gbit", "100") * 1e9), Delay: units.Microsecond})
	}
	for at := range strings.SplitSeq(ruletest.Value(d, "starts", ""), ",") {
		if us, err := strconv.ParseFloat(at, 64); err == nil {
			x.Flows = append(x.Flows, packet.Flow{Start: units.FromMicros(us)})
		}
	}
	o := Options{Seed: uint64(number("seed", "1")), Traffic: Traffic{Kind: ruletest.Word(d, 0),
		Bytes: int64(number("bytes", "1000")), Load: number("load", "30"), SpanUs: number("span", "100")}}
	err := o.traffic(x)
	return x.Flows, err
}

// base is a configuration of the HPCC simulator.
var base = map[string]string{
	"config.txt": "ENABLE_QCN 1\nPACKET_PAYLOAD_SIZE 1000\nTOPOLOGY_FILE topo.txt\nFLOW_FILE flow.txt\n" +
		"SIMULATOR_STOP_TIME 30\nCC_MODE 1\nALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\n" +
		"RP_TIMER 300\nEWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 20Mb/s\n" +
		"RATE_HAI 200Mb/s\nMIN_RATE 100Mb/s\n" +
		"L2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nHAS_WIN 0\nKMAX_MAP 1 100000000000 1600\n" +
		"KMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE 32\n",
	"topo.txt": "6 2 6\n4 5\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 1000ns 0\n2 5 100Gbps 1000ns 0\n" +
		"3 5 100Gbps 1000ns 0\n4 5 100Gbps 1000ns 0\n4 5 100Gbps 1000ns 0\n",
	"flow.txt": "1\n0 2 3 100 10000 2.0\n",
}

// optionsOf says what options change of the base's network and settings.
func optionsOf(t *testing.T, name, line string) string {
	load := func() *simfiles.NS3Scenario {
		x, err := simfiles.LoadNS3("config.txt", func(name string) ([]byte, error) {
			return []byte(base[name]), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	words := strings.Fields(line)
	if name != "" {
		words = []string{name + "=" + line}
	}
	was, x, r := load(), load(), Defaults()
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			value = strconv.Quote(value)
		}
		if err := r.Set(key, []byte(value)); err != nil {
			return "error: " + err.Error()
		}
	}
	if r.Compat == "none" {
		for _, s := range []*simfiles.NS3Scenario{was, x} {
			ethernetFrames(s)
			s.Config.WholeNanos, s.Config.EventOrder = false, false
		}
	}
	if err := r.Override.apply(x, r.Compat == "none"); err != nil {
		return "error: " + err.Error()
	}
	said := ruletest.Changes(was.Config, x.Config) + ruletest.Changes(was.Network, x.Network)
	if said == "" {
		return "no change"
	}
	return strings.ReplaceAll(strings.TrimSpace(said), "\n", "; ")
}
