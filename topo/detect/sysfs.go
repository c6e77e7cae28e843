package detect

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/topo"
)

// Root returns the running system's file tree.
func Root() Tree { return rootTree{os.DirFS("/")} }

type rootTree struct{ fs.FS }

func (rootTree) RealPath(p string) (string, error) {
	r, err := filepath.EvalSymlinks("/" + p)
	return strings.TrimPrefix(r, "/"), err
}

// read returns a file's text without its last newline, "" where it cannot be
// read.
func (m *Host) read(name string) string {
	b, err := fs.ReadFile(m.Tree, strings.TrimPrefix(path.Clean(name), "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

func (m *Host) number(name string) int {
	n, _ := cnum.Int(m.read(name))
	return int(n)
}

func parent(p string) string { return path.Dir(p) }

// pciPath returns the device's place in sysfs with all bridges above it, "" where
// there is none (xml.cc:414).
func (m *Host) pciPath(busID string) string {
	if len(busID) < 12 {
		return ""
	}
	r, err := m.Tree.RealPath("sys/bus/pci/devices/" + strings.ToLower(busID))
	if err != nil {
		return ""
	}
	if _, err := fs.Stat(m.Tree, r); err != nil {
		return ""
	}
	return r
}

// linkSpeed returns the slower of a device's and its port's best speed, in the
// kernel's words (xml.cc:601).
func (m *Host) linkSpeed(p string) string {
	device, port := m.read(p+"/max_link_speed"), m.read(parent(p)+"/max_link_speed")
	if gts(port) < gts(device) {
		return port
	}
	return device
}

func gts(s string) float64 {
	var v float64
	if _, err := fmt.Sscanf(s, "%f GT/s", &v); err != nil {
		return math.Inf(1)
	}
	return v
}

// cpuInfo returns the fields of the first processor in /proc/cpuinfo.
func (m *Host) cpuInfo() map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(m.read("proc/cpuinfo"), "\n") {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			break
		}
		out[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return out
}

// broadcomLinks adds the links between virtual switches of one chip
// (xml.cc:431).
func (b *builder) broadcomLinks(e *topo.Element, busID string) {
	dir := "sys/kernel/pci_switch_link/virtual_switch_links/" + strings.ToLower(busID)
	entries, err := fs.ReadDir(b.m.Tree, dir)
	if err != nil {
		return
	}
	for _, f := range entries {
		known := slices.ContainsFunc(e.Children, func(c *topo.Element) bool {
			target, _ := c.Get("target")
			return c.Name == "pcilink" && target == f.Name()
		})
		if !known && len(f.Name()) == len("0000:00:00.0") && b.m.pciPath(f.Name()) != "" {
			e.Children = append(e.Children, element("pcilink", "target", f.Name()))
		}
	}
}

// atoi reads a decimal number, 0 where it is none.
func atoi(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}
