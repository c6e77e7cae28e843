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

// TestConversations: a traffic in, its flows out.
//
//	traffic KIND [hosts=4] [gbit=100] [bytes=] [load=] [span=us] [seed=1] [starts=us,us]
//	        flows between hosts at one switch, behind which one more host has no cable; starts are of flows
//	        that the traffic replaces. More than 12 flows are counted, with their bytes
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "traffic" {
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
