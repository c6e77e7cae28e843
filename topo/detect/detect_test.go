package detect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// captured is a file tree out of a txtar archive, whose member "links" says
// what symbolic links resolve to.
type captured struct {
	fstest.MapFS
	links map[string]string
}

func (c captured) RealPath(p string) (string, error) {
	if r, ok := c.links[p]; ok {
		return r, nil
	}
	return "", &fs.PathError{Op: "readlink", Path: p, Err: fs.ErrNotExist}
}

func open(t *testing.T, file string) captured {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := captured{fstest.MapFS{}, map[string]string{}}
	for _, f := range a.Files {
		if f.Name != "links" {
			c.MapFS[f.Name] = &fstest.MapFile{Data: f.Data}
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(string(f.Data)), "\n") {
			from, to, _ := strings.Cut(line, " ")
			c.links[from] = to
		}
	}
	return c
}

var hash = regexp.MustCompile(`host_hash="[^"]*"`)

func dump(s *topo.Spec) string {
	return hash.ReplaceAllString(string(topoxml.Write(s.Root)), `host_hash="0x0"`)
}

func h200(n int) func() ([]GPU, error) {
	return func() ([]GPU, error) {
		var out []GPU
		for i := range n {
			g := GPU{Index: i, BusID: fmt.Sprintf("0000:00:%02x.0", 6+i), SM: 90, GDR: true, Name: "NVIDIA H200"}
			for range 18 {
				g.Links = append(g.Links, "fffffff:ff:ff.0")
			}
			out = append(out, g)
		}
		return out, nil
	}
}

func eth0() ([]Interface, error) { return []Interface{{"lo"}, {"eth0"}}, nil }

// TestCapturedMachineEqualsNCCLsDump: what NCCL_TOPO_DUMP_FILE held on the
// same machine, on 1, 2 and 4 of its GPUs (NCCL 2.28.9).
func TestCapturedMachineEqualsNCCLsDump(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		m := &Machine{Tree: open(t, "testdata/h200x4.txtar"), GPUs: h200(n), Interfaces: eth0, Hostname: "vm", Arch: "amd64"}
		s, err := Detect(m, Params{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(fmt.Sprintf("testdata/h200x4-%d.dump.xml", n))
		if err != nil {
			t.Fatal(err)
		}
		if got := dump(s); got != string(want) {
			t.Errorf("%d GPUs: got\n%s\nwant\n%s", n, got, want)
		}
	}
}

// TestServerWithSwitchesAndInfiniBand: two-socket server, a GPU and a
// two-port NIC under one PCIe switch, an RDMA NIC beside.
func TestServerWithSwitchesAndInfiniBand(t *testing.T) {
	m := &Machine{Tree: open(t, "testdata/server.txtar"), Interfaces: eth0, Hostname: "srv", Arch: "amd64",
		GPUs: func() ([]GPU, error) {
			return []GPU{{Index: 0, BusID: "0000:3d:00.0", SM: 80, GDR: true, Links: []string{"0000:c4:00.0", "0000:c4:00.0"}}}, nil
		}}
	s, err := Detect(m, Params{MergeVFs: true})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/server.want.xml")
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(s); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHCAListChoosesPorts(t *testing.T) {
	m := &Machine{Tree: open(t, "testdata/server.txtar"), Interfaces: eth0, GPUs: h200(1), Arch: "amd64"}
	for list, want := range map[string]int{"": 2, "mlx5_1": 1, "^mlx5_1": 1, "=mlx5": 1, "mlx5_0:2": 1} {
		nets, err := m.nets(Params{IBHCA: list})
		if err != nil {
			t.Fatal(err)
		}
		// A list that matches nothing leaves the sockets.
		if len(nets) != want || (list == "=mlx5" || list == "mlx5_0:2") != (nets[0].name == "eth0") {
			t.Errorf("NCCL_IB_HCA=%s: %+v", list, nets)
		}
	}
}

func TestSocketInterfaces(t *testing.T) {
	m := &Machine{Tree: open(t, "testdata/h200x4.txtar"), Interfaces: func() ([]Interface, error) {
		return []Interface{{"lo"}, {"docker0"}, {"ens1"}, {"virbr0"}, {"ens2"}}, nil
	}}
	for list, want := range map[string]string{"": "ens1 ens2", "ens2": "ens2", "=lo": "lo", "^ens": "lo docker0 virbr0"} {
		nets, err := m.socketPorts(Params{SocketIfname: list})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, n := range nets {
			names = append(names, n.name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("NCCL_SOCKET_IFNAME=%s: %s, want %s", list, got, want)
		}
	}
	if _, err := m.socketPorts(Params{SocketIfname: "bond9"}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no such interface: %v", err)
	}
}

func TestWithoutADriverTheErrorIsTyped(t *testing.T) {
	if _, err := NVML(); err == nil {
		t.Skip("this machine has NVML")
	} else if !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v, want it to match ErrUnsupported", err)
	}
}

func TestAMDFamiliesAreNCCLs(t *testing.T) {
	tree := captured{fstest.MapFS{"proc/cpuinfo": {Data: []byte("vendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n")}}, nil}
	b := &builder{m: &Machine{Tree: tree, Arch: "amd64"}, root: element("system")}
	c := b.cpu("0")
	if f, _ := c.Get("familyid"); f != "143" {
		t.Errorf("Zen 2 is family %s, NCCL writes 143", f)
	}
}
