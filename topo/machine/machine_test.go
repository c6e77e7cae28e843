package machine

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/topo/decl"
)

const small = `{"name": "x", "cpu": "milan", "numa": [{"id": 0, "cores": "0-3,36"}], "gpu": {"kind": "a100-sxm"},
 "nvlink": {"mesh": 4}, "nic": {"kind": "connectx-6"}, "network": {},
 "groups": [{"numa": 0, "switches": ["broadcom-gen4"], "gpus": 1, "nics": 1, "times": 2}]}`

// TestGenerate: a Spec becomes NCCL's tree, numbered in order.
func TestGenerate(t *testing.T) {
	s, err := Parse([]byte(small), "x.json")
	if err != nil {
		t.Fatal(err)
	}
	root, err := s.Generate()
	if err != nil {
		t.Fatal(err)
	}
	if mask, _ := root.Child("cpu").Get("affinity"); mask != "10,0000000f" {
		t.Errorf("affinity %q", mask)
	}
	gpus := root.All("gpu")
	if len(gpus) != 2 || len(root.All("net")) != 2 || len(root.All("nvlink")) != 2 {
		t.Fatalf("%d GPUs, %d nets, %d NVLinks", len(gpus), len(root.All("net")), len(root.All("nvlink")))
	}
	target, _ := gpus[0].Child("nvlink").Get("target")
	if bus, _ := gpus[1].Parent().Get("busid"); target != bus {
		t.Errorf("GPU 0's NVLink leads to %s, GPU 1 is at %s", target, bus)
	}
}

// TestFaultsHavePlaces: every fault of a Spec names its member, line and remedy.
func TestFaultsHavePlaces(t *testing.T) {
	for old, c := range map[string][2]string{
		`"milan"`:    {`"milan9"`, `x.json:1:22: "milan9" is not known`},
		`"a100-sxm"`: {`"a1"`, `"a1" is not known`},
		`"0-3,36"`:   {`"3-0"`, "no list of cores"},
		`"numa": 0`:  {`"numa": 4`, "there is no NUMA node 4"},
		`"gpus": 1`:  {`"gpus": 0`, "no GPU"},
		`"times": 2`: {`"times": 2, "bus": ["0000:01:00.0"]`,
			"1 bus ids for 6 PCI functions"},
		`"mesh": 4`:                      {`"mesh": 4, "switch": true`, "NVLinks of two kinds"},
		`{"kind": "connectx-6"}`:         {`{"kind": "connectx-6", "name": "ib"}`, "no place for the number"},
		`"network": {}`:                  {`"network": {"kind": "pigeon"}`, `"pigeon" is not known`},
		`["broadcom-gen4"]`:              {`["hub"]`, `"hub" is not known`},
		`{"kind": "a100-sxm"}`:           {`{"kind": "a100-sxm", "pcie": "9x3"}`, "no PCIe link"},
		`"nics": 1`:                      {`"nics": -1`, "a group of that size"},
		`{"id": 0, "cores": "0-3,36"}`:   {`{"id": 0}, {"id": 0}`, "NUMA node 0"},
		`"gpus": 1, "nics": 1`:           {`"gpus": 1, "nics": 1, "apart": true, "switchs": []`, "switchs"},
		`"switches": ["broadcom-gen4"],`: {`"apart": true,`, "no switch to be apart below"},
		`{"mesh": 4}`: {`{"switch": true, "each": [4]}`,
			"they are the links of each of 2 GPUs"},
		`"kind": "a100-sxm"`: {`"kind": "a100-sxm", "devs": [0, 2]`,
			"list the numbers 0 to 1, each once"},
		`"kind": "connectx-6"`:   {`"kind": "connectx-6", "devs": [7]`, "1 numbers for 2 ports"},
		`"groups": [{"numa": 0,`: {`"groups": [{"numa": 0, "bridge": 300,`, "host bridge 300"},
		`"gpus": 1, `: {`"gpus": 1, "below": [{"numa": 0, "bridge": 1, "gpus": 1}], `,
			"a place of its own of a group below another"},
	} {
		if !strings.Contains(small, old) {
			t.Fatalf("%s is not in the text", old)
		}
		_, err := Parse([]byte(strings.Replace(small, old, c[0], 1)), "x.json")
		if err == nil || !strings.Contains(err.Error(), c[1]) || !strings.HasPrefix(err.Error(), "x.json:") {
			t.Errorf("%s: got %v, want %s with a place", c[0], err, c[1])
		}
	}
}

// FuzzSpec: whatever is read either is refused or makes a tree.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(
		`{"name":"y","cpu":"grace","numa":[{"id":0}],"gpu":{"kind":"gb300"},"nvlink":{"switch":true,"counts":[9,9]},"nic":{"kind":"efa","ports":2,"virtual":true},"groups":[{"numa":0,"gpus":4,"nics":4,"times":16}],"domain":18,"network":{"kind":"efa"}}`))
	f.Add([]byte(
		`{"name":"z","cpu":"rome","numa":[{"id":3},{"id":1}],"gpu":{"kind":"a100-sxm","devs":[1,0]},"nvlink":{"switch":true,"each":[12,0]},"nic":{"kind":"connectx-6","devs":[2,0]},"groups":[{"numa":1,"bridge":2,"switches":["plx-gen3"],"below":[{"switches":["plx-gen3"],"gpus":1},{"nics":1,"times":2}]},{"numa":3,"gpus":1}],"network":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, "f.json")
		if err != nil {
			return
		}
		root, err := s.Generate()
		if err != nil {
			t.Fatalf("read, but not generated: %v", err)
		}
		if n := len(root.All("gpu")); n != s.GPUs() {
			t.Fatalf("%d GPUs, the Spec has %d", n, s.GPUs())
		}
		seen := map[string]bool{}
		for _, p := range root.All("pci") {
			id, _ := p.Get("busid")
			if seen[id] {
				t.Fatalf("bus id %s twice", id)
			}
			seen[id] = true
		}
	})
}

// TestSocketsWithoutASpeedHave10Gigabits: a NIC that only sockets use, of a kind that is not known, has what
// NCCL takes where the kernel names no speed, and no GPUDirect RDMA (net_socket.cc); one for RDMA has to be
// named.
func TestSocketsWithoutASpeedHave10Gigabits(t *testing.T) {
	pci := element("pci", "busid", "0000:01:00.0", "device", "0x9999")
	if _, err := addPort(&Device{PCI: pci, Name: "eth0", Sockets: true}, 0, ""); err != nil {
		t.Fatal(err)
	}
	n := pci.Child("nic").Child("net")
	for name, want := range map[string]string{"speed": "10000", "maxconn": "65536", "gdr": "0", "port": "1"} {
		if got, _ := n.Get(name); got != want {
			t.Errorf("%s %s, want %s", name, got, want)
		}
	}
	if _, err := addPort(&Device{PCI: pci, Name: "mlx5_0"}, 0, ""); err == nil ||
		!strings.Contains(err.Error(), "name the nearest with --nic-kind") {
		t.Error(err)
	}
}

// TestKindOfAGPU: the one that is named, where there is such a kind; else that of its PCI device, then of its
// name.
func TestKindOfAGPU(t *testing.T) {
	gpu := func(device, model string) *Device {
		e := &decl.Element{Name: "pci"}
		e.Set("busid", "0000:1b:00.0")
		e.Set("device", device)
		return &Device{PCI: e, Model: model}
	}
	h100 := gpuKinds["h100-sxm"].pci.device
	for _, c := range []struct {
		d           *Device
		given, want string
	}{{gpu(h100, ""), "", "h100-sxm"}, {gpu(h100, ""), "a100-sxm", "a100-sxm"},
		{gpu(h100, ""), "a100-smx", "--gpu-kind: "}, {gpu("0xffff", ""), "", "of device 0xffff is not known"},
		{gpu("", ""), "", "the kind of GPU is not said"}} {
		got, err := gpuOf(c.d, c.given)
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.given, got, c.want)
		}
	}
}
