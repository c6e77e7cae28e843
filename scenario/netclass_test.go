package scenario

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/exec"
)

// TestNetworkOfMachines: a machine's name brings network, plugin and tuner; a file has
// the network of its NICs and NCCL's own decision; an option precedes both, and a
// user's setting a plugin's.
func TestNetworkOfMachines(t *testing.T) {
	for _, c := range []struct {
		topo, class string
		env         map[string]string
		network     string
		buffers     string // NCCL_BUFFSIZE
		steered     bool
	}{
		{topo: "aws-p5.48xlarge", network: "efa-v2", buffers: "8388608", steered: true},
		{topo: "aws-p5", env: map[string]string{"NCCL_BUFFSIZE": "1048576"}, network: "efa-v2",
			buffers: "1048576", steered: true},
		{topo: "aws-p5", env: map[string]string{"NCCL_TUNER_PLUGIN": "none"}, network: "efa-v2",
			buffers: "8388608"},
		{topo: "aws-p5.48xlarge", class: "infiniband", network: "infiniband"},
		{topo: "aws-p5.xml", network: "efa-v2"},
		{topo: "aws-p5.xml", class: "efa-v2", network: "efa-v2", buffers: "8388608", steered: true},
		{topo: "aws-p4d.24xlarge", network: "efa-v1", buffers: "8388608"},
		{topo: "gcp-a3-mega", network: "tcpxo", buffers: "8388608"},
		{topo: "gcp-a3-high", network: "tcpx", buffers: "4194304"},
		{topo: "gcp-a3-ultra", network: "roce"},
		{topo: "gh200-4-alps.xml", network: "slingshot"},
		{topo: "dgx-h100", network: ""},
		{topo: "aws-g5.48xlarge", network: "efa-v1"},
	} {
		s := &Spec{Machine: Machine{Nodes: []Nodes{{Topo: c.topo, Count: 3}}}, NCCL: NCCL{Env: c.env},
			Network: Network{Class: c.class}}
		m, err := Load(s, Options{Files: os.DirFS("../testdata/topos"), Settings: config.Sources{
			NoEnv: true}})
		if err != nil {
			t.Fatalf("%s: %v", c.topo, err)
		}
		buffers := m.Config.Text("NCCL_BUFFSIZE").Value
		if m.Class().Network != c.network || buffers != c.buffers || (m.Comm.Params.Tuning.Plugin != nil) !=
			c.steered {
			t.Errorf("%s, class %q, %v: network %q, buffers %q, tuner %v", c.topo, c.class, c.env,
				m.Class().Network, buffers, m.Comm.Params.Tuning.Plugin != nil)
		}
		if said := strings.Contains(m.Times(), "; settings of "); said != (m.plugin != "") {
			t.Errorf("%s: %s", c.topo, m.Times())
		}
	}
	s := &Spec{Machine: Machine{Nodes: []Nodes{{Topo: "aws-p4d", Count: 2}}}, NCCL: NCCL{Version: "2.21.5"}}
	m, err := Load(s, Options{Files: os.DirFS("../testdata/topos")})
	if err != nil {
		t.Fatal(err)
	}
	if m.Config.Text("NCCL_BUFFSIZE").Set {
		t.Error("before 1.16, which is younger than NCCL 2.21.5, aws-ofi-nccl sets no buffer size")
	}
	if _, choice, err := m.Comm.Plan(comm.Op{Func: coll.AllReduce, Type: coll.Float32, Count: 256}); err !=
		nil || choice.Proto != coll.Simple {
		t.Errorf("1 KiB on p4d: %v, %v; its plugin leaves Simple alone", choice.Proto, err)
	}
	s.Network.Class = "token-ring"
	if _, err := Load(s, Options{}); err == nil || !strings.Contains(err.Error(), "token-ring") {
		t.Errorf("a class that is not there: %v", err)
	}
}

// TestSteeredChoice: what a plugin's tuner chooses keeps the model's time.
func TestSteeredChoice(t *testing.T) {
	s := &Spec{Machine: Machine{Nodes: []Nodes{{Topo: "aws-p5", Count: 4}}}}
	m, err := Load(s, Options{Settings: config.Sources{NoEnv: true}})
	if err != nil {
		t.Fatal(err)
	}
	_, choice, err := m.Comm.Plan(comm.Op{Func: coll.AllReduce, Type: coll.Float32, Count: 1 << 18})
	if err != nil || !choice.Steered || choice.Algo != coll.Tree || choice.Proto != coll.LL128 ||
		choice.TimeUs <= 0 || choice.Times[choice.Algo][choice.Proto] != choice.TimeUs {
		t.Errorf("1 MiB over 4 p5: %+v, %v; want Tree with LL128 and its time", choice, err)
	}
}

// TestFramesOfOtherTransports: networks that carry neither RoCE nor InfiniBand are refused
// by type where frames are asked for, by class, file or NICs; nothing is refused of flows, of
// one node, and where the class says RoCE.
func TestFramesOfOtherTransports(t *testing.T) {
	files := fstest.MapFS{
		"mine.json": {
			Data: []byte(
				`{"format": "simccl network class", "name": "tcpx", "network": "mine", "source": "estimated", "uncertainty": 0.4, "parameters": {}}`)}}
	for _, c := range []struct {
		topo, class string
		env         map[string]string
		nodes       int
		refused     string // a part of the error
	}{
		{topo: "dgx-h100", nodes: 2},
		{topo: "gcp-a3-ultra", nodes: 2},
		{topo: "dgx-h100", class: "tcpx", nodes: 2, refused: "TCP of GPUDirect-TCPX"},
		{topo: "dgx-h100", class: "mine.json", nodes: 2, refused: "TCP of GPUDirect-TCPX"},
		{topo: "dgx-h100", class: "tcpxo", nodes: 2, refused: "TCP of FasTrak"},
		{topo: "dgx-h100", class: "efa-v3", nodes: 2, refused: "SRD of AWS EFA"},
		{topo: "dgx-h100", class: "slingshot", nodes: 2, refused: "Slingshot"},
		{topo: "gcp-a3-high", nodes: 2, refused: "TCP of GPUDirect-TCPX"},
		{topo: "aws-p5", nodes: 2, refused: "SRD of AWS EFA"},
		{topo: "aws-p5", class: "roce", nodes: 2},
		{topo: "aws-p5", nodes: 1},
		{topo: "gh200-4-alps", nodes: 2, refused: "Slingshot"},
		{topo: "vast-hgx-h200-8", nodes: 2, refused: "TCP of the socket plugin"},
		{topo: "dgx-h100", env: map[string]string{"NCCL_IB_DISABLE": "1"}, nodes: 2,
			refused: "TCP of the socket plugin"},
	} {
		for _, model := range []string{"packet", "hybrid", "flow"} {
			s := small("all_reduce", "64K")
			s.Machine.Nodes, s.NCCL.Env = []Nodes{{Topo: c.topo, Count: c.nodes}}, c.env
			s.Network = Network{Model: model, Class: c.class}
			_, err := Run(context.Background(), s,
				Options{Files: files, Settings: config.Sources{NoEnv: true}})
			switch refused := c.refused != "" && model != "flow"; {
			case refused != errors.Is(err, exec.ErrNotImplemented) || !refused && err != nil:
				t.Errorf("%d x %s, class %q, %v, %s: %v", c.nodes, c.topo, c.class, c.env, model, err)
			case refused && (!strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(),
				"--network flow")):
				t.Errorf("%d x %s, class %q, %v, %s: %v: not what is missing and what to write", c.nodes,
					c.topo, c.class, c.env, model, err)
			}
		}
	}
}
