package show_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func parse(t *testing.T, text, name string) *topo.Spec {
	t.Helper()
	s, err := topoxml.Parse([]byte(text), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const before = `<system version="1">
  <cpu numaid="0" arch="arm64">
    <pci busid="0000:17:00.0" class="0x060400" link_speed="" link_width="16">
      <pci busid="0000:1a:00.0" class="0x03" link_speed="" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>
        </gpu>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" arch="arm64">
    <nic>
      <net name="eth0" dev="0" speed="10000"/>
    </nic>
  </cpu>
</system>
`

func TestDiff(t *testing.T) {
	after := strings.NewReplacer(
		`count="18"`, `count="17"`,
		`rank="0" gdr="1"`, `rank="5"`,
		"    <nic>\n      <net name=\"eth0\" dev=\"0\" speed=\"10000\"/>\n    </nic>\n", "",
		"  </cpu>\n  <cpu numaid=\"1\"", "    <pci busid=\"0000:18:00.0\"><nic><net name=\"eth0\" "+
			"dev=\"0\" speed=\"10000\"/></nic></pci>\n  </cpu>\n  <cpu numaid=\"1\"",
	).Replace(before)
	var b strings.Builder
	for _, c := range show.Diff(parse(t, before, "a.xml"), parse(t, after, "b.xml")) {
		b.WriteString(c.String() + "\n")
	}
	golden.Text(t, "testdata/diff.txt", b.String())
	if d := show.Diff(parse(t, before, "a.xml"), parse(t, before, "b.xml")); len(d) != 0 {
		t.Errorf("a file differs from itself: %v", d)
	}
}
