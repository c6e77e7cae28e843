package diagnose

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestMachineIsTheOneMostLikeTheTable: words of a table about cloud, NICs and GPUs find the built-in
// machine; a GPU's name alone finds the usual one; NICs that are fewer or slower are made so.
func TestMachineIsTheOneMostLikeTheTable(t *testing.T) {
	for _, c := range []struct {
		gpu, nic, cloud string
		per, nodes      int
		nics            any
		want            string
	}{
		{"H100 80GB HBM3", "", "", 8, 2, nil, "dgx-h100"},
		{"H100 80GB HBM3", "CX-7, one 400Gb/s NIC per GPU", "", 2, 4, "8 (inferred)", "dgx-h100"},
		{"H100", "GPUDirect-TCPXO 200Gb/s", "GKE A3 Mega", 8, 2, 8, "gcp-a3-mega"},
		{"H100", "EFA 100Gb/s", "AWS p5.48xlarge", 8, 2, 32, "aws-p5.48xlarge"},
		{"GH200 120GB", "Slingshot 200Gb/s", "Alps", 4, 8, 4, "gh200-4-alps"},
		{"A100-SXM4-40GB", "HDR InfiniBand", "", 4, 2, 2, "hgx-a100-4"},
		{"Tesla V100-SXM3-32GB", "", "", 16, 1, nil, "dgx-2"},
		{"NVIDIA RTX PRO 6000 Blackwell Server Edition", "", "", 8, 1, nil, "pcie-rtx-pro-6000-8"},
		{"NVIDIA H200", "", "", 4, 1, nil, "h200x4"},
		{"A100-SXM4-40GB", "HDR 200Gb/s", "", 8, 2, 4, "dgx-a100"},
	} {
		data, err := json.Marshal(map[string]any{"name": "own", "collective": "all_reduce",
			"system": map[string]any{"gpu": c.gpu, "nic": c.nic, "cloud": c.cloud, "gpus_per_node": c.per,
				"nodes": c.nodes, "nics_per_node": c.nics},
			"rows": []any{map[string]any{"bytes": 1 << 20, "time_us": 100.0}}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := read([]File{{"table.json", data}})
		if err != nil || len(m.tables) != 1 {
			t.Fatalf("%d tables (%v)", len(m.tables), err)
		}
		l := nearest(m.tables[0].run)
		if l == nil || l.name != c.want {
			t.Errorf("%s, %s, %s, %d GPUs a node: %+v, want %s", c.gpu, c.nic, c.cloud, c.per, l, c.want)
		}
		if c.want != "dgx-a100" {
			continue
		}
		q := &work{Request: &Request{Options: options()}, m: m, rep: &Report{}}
		b, err := q.benchOf(m.tables[0])
		if err != nil {
			t.Fatal(err)
		}
		if n := len(b.nics()); n != 4 ||
			!strings.Contains(strings.Join(q.rep.Notes, "\n"), "4 of them are left out") {
			t.Errorf("%d NICs, want the table's 4; notes %q", n, q.rep.Notes)
		}
	}
}

// TestOwnTableIsOfTheMachineThatItNames: the first line of a simulated table names the machine, and its file
// by its digest; a machine that is none of the built-in ones has to be given.
func TestOwnTableIsOfTheMachineThatItNames(t *testing.T) {
	body := string(measured(t, small(), 0).Data)
	for _, c := range []struct{ topo, digest, want string }{
		{"dgx-a100", "63b6af5f0e96", "dgx-a100"},
		{"dgx-h100.xml", "fc8a8bfdaa5a", "dgx-h100"},
		{"dgx-a100", "fc8a8bfdaa5a", ""}, // another file of that name
		{"mine.xml", "0123456789ab", ""},
	} {
		text := "# simccl v0 simulated: topo=" + c.topo + " sha256=" + c.digest +
			" nccl-rules=2.28.9 seed=1\n" + strings.ReplaceAll(body, "NVIDIA H100 80GB HBM3", "sm_80")
		m, err := read([]File{{"table.txt", []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		q := &work{Request: &Request{Options: options()}, m: m, rep: &Report{}}
		b, err := q.benchOf(m.tables[0])
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%+v: a machine is taken", c)
		case c.want != "" && (err != nil || b.spec.Machine.Nodes[0].Topo != c.want):
			t.Errorf("%+v: %v", c, err)
		}
	}
}
