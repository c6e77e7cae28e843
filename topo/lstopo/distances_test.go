package lstopo

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/topo/smi"
)

// withLinks adds a matrix NVLinkBandwidth to a host of GPUs, whose bus ids become gp_index.
func withLinks(gpus int, indexes, values string) string {
	text := strings.ReplaceAll(host("1db5", gpus), `<object type="PCIDev" pci_busid="0000:`,
		`<object type="PCIDev" gp_index="bus" pci_busid="0000:`)
	for i := 0; strings.Contains(text, `gp_index="bus"`); i++ { // GPU, NIC, GPU, NIC …
		text = strings.Replace(text, `gp_index="bus"`, `gp_index="`+string(rune('a'+i))+`"`, 1)
	}
	text = strings.Replace(text, `<object type="Package" os_index="0">`,
		`<object type="Package" os_index="0" gp_index="p">`, 1)
	return strings.Replace(text, "</topology>",
		`<distances2hetero nbobjs="3" kind="18" name="NVLinkBandwidth"><indexes length="1">`+indexes+
			"</indexes><u64values length=\"1\">"+values+"</u64values></distances2hetero></topology>", 1)
}

// TestNVLinkBandwidth: the file's own NVLinks are taken: between GPUs, to NVSwitches, with
// those to CPUs left out, and what is no such matrix is refused with its place.
func TestNVLinkBandwidth(t *testing.T) {
	for _, c := range []struct{ indexes, values, cell, said string }{
		{"PCIDev:a PCIDev:c", "1000000 50000 50000 1000000", "NV2",
			"NVLinks are the file's (NVLinkBandwidth), of 25000 MB/s each"},
		{"PCIDev:a PCIDev:c Package:p", "1000000 40000 40000 40000 1000000 0 40000 0 1000000", "NV2",
			"those between GPUs and CPUs are left out"},
		{"PCIDev:a PCIDev:c PCIDev:x PCIDev:y",
			"1000000 0 25000 50000 0 1000000 25000 50000 25000 25000 1000000 0 50000 50000 0 1000000", "NV3",
			"NVLinks are the file's"},
	} {
		root, notes, err := Tree([]byte(withLinks(2, c.indexes, c.values)), "h.xml", Given{})
		if err != nil {
			t.Errorf("%s: %v", c.indexes, err)
			continue
		}
		if got := smi.Of(root).Cells[0][1]; got != c.cell {
			t.Errorf("%s: %s between the GPUs, want %s", c.indexes, got, c.cell)
		}
		if said := strings.Join(notes, "\n"); !strings.Contains(said, c.said) {
			t.Errorf("notes %q, want %q", said, c.said)
		}
	}
	for values, want := range map[string]string{"1 2 3": "3 values between 2 objects",
		"1 x 3 4": `"x" is no bandwidth`} {
		if _, _, err := Tree([]byte(withLinks(2, "PCIDev:a PCIDev:c", values)), "h.xml", Given{}); err ==
			nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "h.xml:") {
			t.Errorf("%s: %v, want %s", values, err, want)
		}
	}
}
