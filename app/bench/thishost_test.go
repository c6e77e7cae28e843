package bench

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/real/realtest"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/detect"
)

// testDetectedNICsAreVerbs: what detection reads of ports from sysfs is what
// libibverbs says of them, and NCCL_IB_HCA chooses among them. There need be no
// GPU: one is fake.
func TestDetectedNICsAreVerbs(t *testing.T) {
	var names, all []string
	for _, d := range realtest.RDMA(t) {
		names = append(names, d.Name)
		for _, p := range d.Ports {
			all = append(all, fmt.Sprintf("%s port %d: %d Mb/s, guid 0x%x, %d queue pairs", d.Name, p.Num,
				p.Mbps, bits.ReverseBytes64(d.GUID), d.MaxQP))
		}
	}
	first, last := names[0], names[len(names)-1]
	for list, want := range map[string]func(line string) bool{
		"":                   func(string) bool { return true },
		"=" + first:          func(l string) bool { return strings.HasPrefix(l, first+" ") },
		"^=" + last:          func(l string) bool { return !strings.HasPrefix(l, last+" ") },
		"=" + first + ":1":   func(l string) bool { return strings.HasPrefix(l, first+" port 1:") },
		"=" + first + ":200": func(string) bool { return false },
	} {
		var expected []string
		for _, l := range all {
			if want(l) {
				expected = append(expected, l)
			}
		}
		got := detectedPorts(t, list)
		if len(expected) == 0 { // sockets then
			got = slices.DeleteFunc(got, func(l string) bool { return !slices.Contains(all, l) })
		}
		if !slices.Equal(got, expected) {
			t.Errorf("NCCL_IB_HCA=%s: detected\n%s\nlibibverbs says\n%s", list, strings.Join(got, "\n"),
				strings.Join(expected, "\n"))
		}
	}
}

// detectedPorts are the nets of this machine beside a fake GPU.
func detectedPorts(t *testing.T, list string) []string {
	t.Helper()
	m, err := detect.Live()
	if err != nil {
		t.Fatal(err)
	}
	m.GPUs = func() ([]detect.GPU, error) { return []detect.GPU{{BusID: "0000:ff:1f.7", SM: 90}}, nil }
	m.Verbs = func() ([]detect.HCA, error) { return (&Host{Note: func(line string) { t.Log(line) }}).verbs() }
	spec, err := detect.Detect(m, detect.Params{MergeVFs: true, IBHCA: list})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(e *topo.Element)
	walk = func(e *topo.Element) {
		if e.Name == "net" {
			at := func(k string) string { v, _ := e.Get(k); return v }
			out = append(out, fmt.Sprintf("%s port %s: %s Mb/s, guid %s, %s queue pairs", at("name"),
				at("port"), at("speed"), at("guid"), at("maxconn")))
		}
		for _, c := range e.Children {
			walk(c)
		}
	}
	walk(spec.Root)
	return out
}

// testWhereDetectionBegins: with the file that NCCL would read first, or with
// nothing where it is not there; a file that is none is an error.
func TestWhereDetectionBegins(t *testing.T) {
	file := filepath.Join(golden.Root(t, "testdata", "topos"), "h200x4-4.xml")
	for value, want := range map[string]string{file: "begun with " + file,
		"none.xml": "NCCL_TOPO_FILE=none.xml is not there", "thishost_test.go": "not well-formed XML"} {
		var said strings.Builder
		env := map[string]string{"NCCL_TOPO_FILE": value, "NCCL_IB_MERGE_VFS": "0x0", "NCCL_IB_DISABLE": ""}
		h := &Host{Read: os.ReadFile, Warn: func(err error) { fmt.Fprintln(&said, err) },
			Note:   func(line string) { fmt.Fprintln(&said, line) },
			Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
		root, err := h.beginning()
		if err != nil {
			fmt.Fprint(&said, err)
		}
		if !strings.Contains(said.String(), want) || (root != nil) != (value == file) {
			t.Errorf("%s: %v, %q", value, root, said.String())
		}
		if h.number("NCCL_IB_MERGE_VFS", 1) != 0 || h.number("NCCL_IB_DISABLE", 3) != 3 ||
			h.number("NCCL_DMABUF_ENABLE", 1) != 1 {
			t.Error("numbers are not read as NCCL reads them")
		}
	}
}
