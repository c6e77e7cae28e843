package datasheet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestFigures is the table whole, and what PCI ids it knows: a figure changes with its source alone.
func TestFigures(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "name: BF16 and TF32 (TFLOP/s), memory and link (GB/s), capacity (GB); PCI devices")
	for _, name := range Names() {
		g, _ := Find(name)
		var ids []string
		for vendor, of := range map[uint64]map[uint16]string{nvidia: devices, amd: amdDevices} {
			for id := range of {
				if d, ok := Device(vendor, uint64(id)); ok && d == g {
					ids = append(ids, fmt.Sprintf("%04x:%04x", vendor, id))
				}
			}
		}
		slices.Sort(ids)
		fmt.Fprintf(&b, "%s: %g %g, %g %g, %g; %s\n", name, g.Matrix, g.Single, g.Memory, g.Link, g.Capacity,
			strings.Join(ids, " "))
	}
	golden.Text(t, "testdata/figures.txt", b.String())
}
