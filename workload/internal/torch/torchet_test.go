package torch

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
)

func shared(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "workloads", name))
	if err != nil {
		t.Skip("the recordings beside the checkout are not there: " + err.Error())
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSamples: nodes and calls of public traces and of our jobs.
func TestSamples(t *testing.T) {
	for _, x := range []struct {
		file, schema        string
		nodes, comms, calls int
		world, device       int
	}{
		{"samples/pytorch_et/param_resnet_2gpu_et_1.1.0.json.gz", "1.1.0-chakra.0.0.4", 14392, 27, 21, 2, 1},
		{"samples/pytorch_et/param_resnet_1gpu_et_1.0.3.json.gz", "1.0.3-chakra.0.0.4", 14391, 27, 21, 1, 0},
		{"samples/pytorch_et/param_linear_et_1.0.1.json.gz", "1.0.1", 931, 0, 0, 0, -1},
		{"truth/ddp/et_rank1.json.gz", "1.1.1-chakra.0.0.4", 5498, 52, 52, 4, 1},
		{"truth/pp/et_rank1.json.gz", "1.1.1-chakra.0.0.4", 9378, -1, -1, 4, 1},
		{"truth/ep/et_rank0.json.gz", "1.1.1-chakra.0.0.4", -1, 50, 50, 4, 0},
	} {
		t.Run(filepath.Base(x.file), func(t *testing.T) {
			b := shared(t, x.file)
			if !Recognise(b[:512]) {
				t.Error("is not recognised")
			}
			tr, err := Read(bytes.NewReader(b), x.file)
			if err != nil {
				t.Fatal(err)
			}
			comms, calls := 0, 0
			for _, c := range tr.Comms {
				if c.Name != "coalesced" {
					comms++
				}
				if c.Name != "coalesced" && c.Name != "wait" && c.Name != "init" {
					calls++
				}
			}
			if tr.Schema != x.schema || x.nodes >= 0 && tr.Nodes != x.nodes || x.comms >= 0 &&
				(comms != x.comms || calls != x.calls) || tr.World != x.world || tr.Device != x.device {
				t.Errorf("schema %s, %d nodes, %d of %d are calls, world %d, device %d", tr.Schema, tr.Nodes,
					calls, comms, tr.World, tr.Device)
			}
			p, notes, err := Program([]*Trace{tr}, tr.World, true)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(len(p.Calls), notes)
			if !strings.Contains(x.file, "/pp/") { // one rank's sends have no partner in a copy of it
				if err := p.Lint(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

const small = `{"schema": "1.1.0-chakra.0.0.4", "nodes": [
{"id": 4, "name": "## process_group:init ##", "ctrl_deps": 3, "inputs": {"values": ["[{\"pg_name\": \"7\", \"ranks\": [1, 0], \"group_size\": 2}]"], "shapes": [[]], "types": ["String"]}, "attrs": []},
{"id": 9, "name": "record_param_comms", "inputs": {"values": [[[7, 8, 0, 6, 2, "cuda:3"]], [825, true], ["7", "x"], 1, "send", [], [], 0, 1, 2], "shapes": [[[2, 3]], [[], []], [[], []], [], [], [], [], [], [], []], "types": ["GenericList[Tensor(c10::Half)]", "Tuple[Int,Bool]"]}, "attrs": [{"name": "rf_id", "type": "uint64", "value": 5}]},
{"id": 10, "name": "nccl:coalesced"}]}`

// TestSmall: a call without the attributes of newer schemas.
func TestSmall(t *testing.T) {
	tr, err := Read(strings.NewReader(small), "f")
	if err != nil {
		t.Fatal(err)
	}
	if c := tr.Comms[0]; c.Name != "send" || c.In != 6 || c.Type != "c10::Half" || c.Root != 1 ||
		c.RecordID != 5 || tr.Device != 3 || tr.World != 2 {
		t.Errorf("%+v %+v", c, tr)
	}
	p, _, err := Program([]*Trace{tr, {}}, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	if c := p.Calls[0]; c.Func != coll.Send || c.Peer != 1 || c.Count != 6 || p.Comms[0].Ranks[0] != 1 {
		t.Errorf("%+v %+v", c, p.Comms)
	}
	if _, _, err := Program([]*Trace{tr}, 2, false); err == nil || !strings.Contains(err.Error(),
		"--symmetric") {
		t.Error(err)
	}
	if _, err := Read(strings.NewReader(small[:300]), "f"); err == nil || !strings.Contains(err.Error(),
		"f:3:") {
		t.Error(err)
	}
}

// FuzzRead: an error, or a program.
func FuzzRead(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := Read(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		if p, _, err := Program([]*Trace{tr, tr}, 2, false); err == nil {
			_ = p.Lint()
		}
	})
}
