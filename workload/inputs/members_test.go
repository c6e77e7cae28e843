package inputs

import (
	"strings"
	"testing"
)

func kindOf(text string) Kind {
	v := Of([]byte(text))
	return v.Kind()
}

// TestDocumentsAreKnownByTheirMembers: by the fewest members that say what a document is; with one of them
// less it is not known.
func TestDocumentsAreKnownByTheirMembers(t *testing.T) {
	text := func(members string) string {
		var b strings.Builder
		for i, m := range strings.Fields(members) {
			b.WriteString([]string{"{", ", "}[min(i, 1)] + `"` + m + `": 1`)
		}
		return b.String() + "}\n"
	}
	for _, c := range []struct {
		kind    Kind
		members string
	}{
		{Scenario, "scenario"}, {Sweep, "base grid"}, {Sweep, "base list"}, {Sweep, "base zip"},
		{Sweep, "base sweep"}, {Sweep, "base seeds"}, {Fabric, "switches"}, {Fabric, "cables"},
		{Decision, "nNodes topoXml"}, {Decision, "nRanks selection"}, {MachineSpec, "gpu numa"},
		{MachineSpec, "cpu groups"}, {TestJSON, "results config"}, {TestJSON, "results nccl_version"},
		{TestJSON, "results start_time"}, {Meta, "mode world env"}, {StepTimes, "variants mode"},
		{StepTimes, "variants step_ms"}, {LLDP, "lldp"}, {KubernetesNodes, "items kind nodeInfo"},
		{KubernetesNodes, "items kind Node"}, {KubernetesNodes, "items kind nodeName"},
		{HFConfig, "architectures hidden_size"}, {HFConfig, "model_type hidden_size"},
		{HFConfig, "hidden_size num_hidden_layers"}, {HFConfig, "text_config hidden_size"},
		{SweepResults, "key point"}, {SweepResults, "sweep digest"},
	} {
		if k := kindOf(text(c.members)); k != c.kind {
			t.Errorf("%s is %v, want %v", c.members, k, c.kind)
		}
		words := strings.Fields(c.members)
		for i := range words {
			less := append(append([]string{"other"}, words[:i]...), words[i+1:]...)
			if k := kindOf(text(strings.Join(less, " "))); k != Unknown {
				t.Errorf("%v is %v, want nothing", less, k)
			}
		}
	}
}

// TestRowsAreKnownByTheirFields: lists without a heading by the numbers of fields of their first lines.
func TestRowsAreKnownByTheirFields(t *testing.T) {
	const network, flows = "5 1 4\n0\n0 4 100Gbps 1us 0\n", "2\n0 1 3 100 1000 2\n"
	for text, want := range map[string]Kind{
		network: NS3Network, "# a comment\n\n" + network: NS3Network,
		strings.Replace(network, "5 1 4", "5 1", 1):             Unknown,
		strings.Replace(network, "5 1 4", "5 1 x", 1):           Unknown,
		strings.Replace(network, "100Gbps", "100", 1):           Unknown,
		strings.Replace(network, " 1us 0", "", 1):               Unknown,
		strings.Replace(network, " 0\n", "\n", 1):               NS3Network,
		strings.Join(strings.SplitAfter(network, "\n")[:2], ""): Unknown,
		flows: NS3Flows, strings.Replace(flows, " 2\n", "\n", 1): Unknown,
		strings.Replace(flows, "1000", "x", 1):    Unknown,
		strings.Replace(flows, "2\n", "2 2\n", 1): Unknown, "x" + flows: Unknown, "2\n": Unknown,
		"NCCL_ALGO=Ring\n": Settings, "NCCL_ALGO\n": Unknown, "ALGO=Ring\n": Unknown,
		"allreduce,0,65536,ring,ll,2,-1,-1\n":     Tuner,
		"broadcast,0,65536,ring,ll,2,-1,-1\n":     Tuner,
		"allgather,0,65536,ring,ll,2,-1,-1\n":     Tuner,
		"reduce,0,65536,ring,ll,2,-1,-1\n":        Tuner,
		"reducescatter,0,65536,ring,ll,2,-1,-1\n": Tuner,
		"allreduce,0,65536,ring,ll,2,-1\n":        Unknown,
		"alltoall,0,65536,ring,ll,2,-1,-1\n":      Unknown,
	} {
		if k := kindOf(text); k != want {
			t.Errorf("%q is %v, want %v", text, k, want)
		}
	}
}
