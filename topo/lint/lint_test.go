package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/lint"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func check(t *testing.T, data []byte, name string) []lint.Finding {
	t.Helper()
	spec, err := topoxml.Parse(data, name)
	if err != nil {
		t.Fatal(err)
	}
	p := topo.DefaultParams()
	p.NRanks = 64
	return lint.Check(spec, p)
}

func text(fs []lint.Finding) string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

// TestOddFiles holds each reported oddity against what lint says of the file.
func TestOddFiles(t *testing.T) {
	dir := golden.Shared(t, "topos", "odd")
	for _, c := range []struct{ file, want string }{
		{"a100-pcie-x2-asymmetric-nvlink.xml", "[nvlink-asymmetric]"},
		{"azure-ndv4-2023-numa-swapped.xml", "share cores"},
		{"azure-ndv5-2023-wrong-affinity.xml", "perhaps swapped"},
		{"azure-ndv2-2023-wrong-affinity.xml", "share cores"},
		{"modal-b200-vm-1-rootport-width0.xml", "NCCL takes 16 lanes"},
		{"modal-b200-vm-3-nvlink-peers-as-switch.xml", "[nvlink-count]"},
		{"h100-gpu7-invisible-nvswitch.xml", "[nvlink-uneven]"},
		{"gb300-nvl72-2tray-rank5-no-nvlink.xml", "0 NVLinks while 7 GPUs have 18"},
		{"h200-vm-flat-numa-minus1.xml", "numaid is -1"},
		{"aws-p4d-24xl-2020-no-arch.xml", "places of GPUs without <gpu>"},
		{"aws-g5-48xl-2023-no-arch.xml", "no arch"},
		{"missing-cpu-arch-attributes.xml", "no arch"},
		{"gb10-midtag-newline.xml", "NCCL's parser fails"},
		{"aws-p5-48xl-2026-xml-node-overflow.xml", ""},
		{"rubin-vr200-mlopart-two-ranks-one-gpu.xml", "a second GPU in one <pci>"},
		{"modal-b200-vm-4-synthetic-pix.xml", "also holds a <nic>"},
	} {
		data, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		got := text(check(t, data, c.file))
		t.Logf("%s\n%s", c.file, got)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q, got\n%s", c.file, c.want, got)
		}
		for _, line := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
			if line != "" && !strings.HasPrefix(line, c.file+":") {
				t.Errorf("a finding without a place: %s", line)
			}
		}
	}
}

// TestOwnFilesHaveNoErrors keeps lint from crying wolf.
func TestOwnFilesHaveNoErrors(t *testing.T) {
	files, err := filepath.Glob(golden.Root(t, "testdata", "topos", "*.xml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		fs := check(t, data, filepath.Base(f))
		t.Logf("%s\n%s", filepath.Base(f), text(fs))
		for _, x := range fs {
			if x.Severity == lint.Error {
				t.Errorf("%v", x)
			}
		}
	}
}

// TestRules plants one fault at a time.
func TestRules(t *testing.T) {
	const good = `<system version="1">
  <cpu numaid="0" affinity="000000ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:17:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:1a:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" gdr="1">
          <nvlink target="0000:1b:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:1b:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="90" gdr="1">
          <nvlink target="0000:1a:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:18:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="400000" port="1" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="0000ff00" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:98:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic>
        <net name="mlx5_1" dev="1" speed="400000" port="1" gdr="1"/>
      </nic>
    </pci>
  </cpu>
</system>
`
	for _, c := range []struct{ name, from, to, want string }{
		{"a far net", "", "",
			`t.xml:24:9: warning: system/cpu[1]/pci[0]/nic[0]/net[0]: net mlx5_1 is nearest to a GPU by SYS`},
		{"asymmetric", `<nvlink target="0000:1a:00.0" count="4"`, `<nvlink target="0000:1a:00.0" count="2"`,
			`4 NVLinks to 0000:1b:00.0 but 2 back`},
		{"one way", "          <nvlink target=\"0000:1a:00.0\" count=\"4\" tclass=\"0x030200\"/>\n", "",
			`error: system/cpu[0]/pci[0]/pci[0]/gpu[0]: 4 NVLinks to 0000:1b:00.0 but 0 back: NCCL fails`},
		{"duplicate bus id", `busid="0000:1b:00.0" class`, `busid="0000:1a:00.0" class`,
			`busid 0000:1a:00.0 is system/cpu[0]/pci[0]/pci[0] already`},
		{"width 0", `link_speed="32.0 GT/s PCIe" link_width="16">` + "\n      <nic>",
			`link_speed="32.0 GT/s PCIe" link_width="0">` + "\n      <nic>", `NCCL takes 16 lanes`},
		{"speed", `link_speed="32.0 GT/s PCIe" link_width="16">` + "\n      <nic>",
			`link_speed="fast" link_width="16">` + "\n      <nic>",
			`link_speed "fast" is unknown, NCCL takes Gen3 (12 GB/s)`},
		{"swapped", `affinity="000000ff"`, `affinity="00ff0000"`, `numaid 1 has lower cores than numaid 0`},
		{"GeForce without peers", `<pci busid="0000:1b:00.0" class="0x030200"`,
			`<pci busid="0000:1c:00.0" class="0x030200" device="0x2684" link_speed="32.0 GT/s PCIe" ` +
				`link_width="16">` + "\n        <gpu dev=\"2\" sm=\"89\"/>\n      </pci>\n" +
				`      <pci busid="0000:1b:00.0" class="0x030200"`,
			`a GeForce behind a PCIe switch: NVIDIA's driver gives it no peer access`},
		{"numaid twice", `numaid="1"`, `numaid="0"`, `numaid 0 is system/cpu[0] already`},
		{"narrow NIC", `link_width="16">` + "\n        <nic>", `link_width="8">` + "\n        <nic>",
			`a port of 50 GB/s on a PCIe link of 24 GB/s`},
		{"same dev", `<gpu dev="1"`, `<gpu dev="0"`, `dev 0 is system/cpu[0]/pci[0]/pci[0]/gpu[0] already`},
		{"unknown attribute", `name="mlx5_0"`, `name="mlx5_0" rail="3"`, `NCCL does not know this attribute`},
		{"too many links", `count="4" tclass="0x030200"/>` +
			"\n        </gpu>\n      </pci>\n      <pci busid=\"0000:1b", `count="40" tclass="0x030200"/>` +
			"\n        </gpu>\n      </pci>\n      <pci busid=\"0000:1b", `40 NVLinks, an sm_90 chip has 18`},
	} {
		in := strings.Replace(good, c.from, c.to, 1)
		if c.from != "" && in == good {
			t.Fatalf("%s: nothing was changed", c.name)
		}
		if got := text(check(t, []byte(in), "t.xml")); !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q, got\n%s", c.name, c.want, got)
		}
	}
}

// TestEqualFindingsAreCounted: a fault of every GPU is reported ten times, with its
// number.
func TestEqualFindingsAreCounted(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<system version="1"><cpu numaid="0" affinity="1" arch="x86_64" vendor="AuthenticAMD">`)
	for i := range 30 {
		fmt.Fprintf(&b,
			`<pci busid="0000:%02x:00.0" class="0x030200" link_speed="%s" link_width="16"><gpu dev="%d" sm="80" gdr="1"/></pci>`, i+1, strings.Repeat("z", 3000), i)
	}
	b.WriteString("</cpu></system>")
	n := 0
	for _, f := range check(t, []byte(b.String()), "f.xml") {
		if f.Rule != "speed" {
			continue
		}
		if n++; n == 10 && !strings.Contains(f.String(), "(and 20 more of this kind)") ||
			len(f.String()) > 500 {
			t.Error(f)
		}
	}
	if n != 10 {
		t.Errorf("%d findings of speed, want 10", n)
	}
}

// An inner PCI link far below what hangs below it is a warning, of a switch's port as of
// a root port, but not where the GPU below has C2C.
func TestSlowUplinksAreTold(t *testing.T) {
	const file = `<system version="1"><cpu host_hash="0x1" numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="0000:10:00.0" class="0x060400" vendor="0x104c" device="0x8232" link_speed="%root" link_width="%lanes">
<pci busid="0000:11:00.0" class="0x060400" vendor="0x104c" device="0x8233" link_speed="%port" link_width="%width">
<pci busid="0000:12:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" rank="0" gdr="1">%c2c</gpu></pci></pci>
</pci></cpu></system>`
	for _, c := range []struct {
		root, lanes, port, width, c2c string
		want                          int
	}{
		{"32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16", "", 0},
		{"32.0 GT/s PCIe", "16", "2.5 GT/s PCIe", "1", "", 1},
		{"2.5 GT/s PCIe", "1", "2.5 GT/s PCIe", "1", "", 2},
		{"5.0 GT/s PCIe", "2", "32.0 GT/s PCIe", "16", "", 1},
		{"16.0 GT/s PCIe", "4", "32.0 GT/s PCIe", "16", "", 0}, // an eighth
		{"2.5 GT/s PCIe", "1", "2.5 GT/s PCIe", "1", `<c2c bw="44712" count="10"/>`, 0},
	} {
		data := strings.NewReplacer("%root", c.root, "%lanes", c.lanes, "%port", c.port, "%width", c.width,
			"%c2c", c.c2c).Replace(file)
		if got := text(check(t, []byte(data), "uplink.xml")); strings.Count(got, "[uplink]") != c.want {
			t.Errorf("%s x%s above %s x%s: %d findings, want %d\n%s", c.root, c.lanes, c.port, c.width,
				strings.Count(got, "[uplink]"), c.want, got)
		}
	}
}

// TestSplitDomainHasNoFalseErrors: of a domain that NCCL splits, a tray without NVLinks beside a whole one,
// the nets are each its GPUs', and no setting is recommended that changes nothing.
func TestSplitDomainHasNoFalseErrors(t *testing.T) {
	tray := string(builtin.Lookup("gb200-nvl72").XML())
	inner := tray[strings.Index(tray, "<cpu"):strings.LastIndex(tray, "</system>")]
	hash := regexp.MustCompile(`<cpu( host_hash="[^"]*")?`)
	links := regexp.MustCompile(`<nvlink[^>]*>`)
	got := text(check(t, []byte(`<system version="1">`+hash.ReplaceAllString(inner, `<cpu host_hash="0x1"`)+
		links.ReplaceAllString(hash.ReplaceAllString(inner, `<cpu host_hash="0x2"`), "")+`</system>`),
		"split.xml"))
	for _, want := range []string{"for 2 nodes", "GPUs 0-3; GPUs 4-7", "no setting joins them"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for _, no := range []string{"error:", "net-unreached", "NCCL_NET_DISABLE_INTRA"} {
		if strings.Contains(got, no) {
			t.Errorf("%q in\n%s", no, got)
		}
	}
}

// TestMostElements: NCCL's tree of XML holds 256 elements (topo.h:226).
func TestMostElements(t *testing.T) {
	for more := range 80 { // NVLinks, each an element
		var b strings.Builder
		b.WriteString(`<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" ` +
			`modelid="143">`)
		for i := range 32 {
			fmt.Fprintf(&b, `<pci busid="0000:%02x:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" `+
				`link_width="16"><gpu dev="%d" sm="90" gdr="1">`, i+1, i)
			for k := range 4 + (more+i)/32 {
				fmt.Fprintf(&b, `<nvlink target="0000:f%d:00.0" count="1" tclass="0x068000"/>`, k)
			}
			b.WriteString(`</gpu></pci>`)
		}
		b.WriteString(`</cpu></system>`)
		if found := text(check(t, []byte(b.String()), "t.xml")); strings.Contains(found, "elements once") {
			if !strings.Contains(found, " 257 elements once") {
				t.Error(found)
			}
			return
		}
	}
	t.Error("no such finding")
}
