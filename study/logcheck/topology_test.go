package logcheck_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/topo/machine"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// decided are the sections of a log that show decisions; the system has ids that a
// description has none for.
var decided = []string{"graphs", "trees", "rings", "channels", "table", "choices"}

// described checks that what topo gen makes of a log's description decides as the log says.
func described(t *testing.T, path string, log *ncclog.Log) {
	t.Helper()
	m, err := logcheck.Topology(log, "")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(m.Nodes[0].File.Data, path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := machine.Describe(spec.Root, "log")
	if err != nil {
		t.Fatal(err)
	}
	root, err := s.Generate()
	if err != nil {
		t.Fatal(err)
	}
	rep, err := logcheck.Check(logcheck.Input{Log: log, Topo: &logcheck.File{Name: "described.xml",
		Data: topoxml.Write(root)}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range decided {
		x := rep.Sections[name]
		if n += x.Compared; x.Compared != x.Equal {
			t.Errorf("%s: %d of %d equal: %s", name, x.Equal, x.Compared, x.First)
		}
	}
	if t.Logf("%d lines", n); n < 5 {
		t.Errorf("%d lines compared", n)
	}
}

// TestDescribedLogs: the description of a log's machine decides as the log says.
func TestDescribedLogs(t *testing.T) {
	for _, name := range []string{"info_4.log.gz", "host_2x2.log.gz"} {
		t.Run(name, func(t *testing.T) {
			path := golden.Root(t, "testdata", "measured", "h200x4", "logs", name)
			described(t, path, read(t, path))
		})
	}
}

// TestDescribedSharedLogs is the same for logs that are not part of the repository, and names
// what a description cannot say.
func TestDescribedSharedLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: logs of real machines")
	}
	shared := golden.Shared(t)
	for _, name := range []string{"a100-pcie-x2-nvlbridge.log", "rtx4090x4-epyc-calico.log"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(shared, "reference-logs", name)
			described(t, path, read(t, path))
		})
	}
	data, err := os.ReadFile(filepath.Join(shared, "topos/odd/a100-pcie-x2-asymmetric-nvlink.xml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, "odd.xml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := machine.Describe(spec.Root, "odd"); err == nil ||
		err.Error() != "odd.xml:4:7: GPU 0 has 1 NVLinks to GPU 1, which has 12 back; leave --spec out: "+
			"the topology file has it" {
		t.Errorf("got %v", err)
	}
}
