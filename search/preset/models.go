package preset

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/topo"
)

// text are RCCL's models of machines as facts (graph/rome_models.cc:54-1761 and 3123 of RCCL 2.30.4), in the
// order in which they are tried. Of each: its line, the counts of CPUs and of XGMI neighbours and the
// pattern of GPUs and NICs by CPU; bus number and NUMA node of GPUs and NICs; links between GPUs; the kinds
// of paths from each NIC to the GPUs; options; the rings of GPUs with the NICs (N) that they pass, the rings
// of the host before last and of the last where the number of hosts is odd, trees, and trees by rails.
//
//go:embed models.txt
var text string

type model struct {
	name    string
	line    int // of graph/rome_models.cc of RCCL 2.30.4, and of 2.28.3 but for GIO
	cpus    int
	links   int
	pattern string
	gpus    []device
	nics    []device
	xgmi    []uint8         // links from GPU to GPU, row by row
	near    []topo.PathKind // kinds of paths from NIC to GPU, row by row
	options map[string]string
	rings   []string
	tail2   []string // of the host before last
	tail1   []string // of the last host
	rails   []string
	trees   []string
}

// device is a GPU or a NIC.
type device struct {
	bus  int64
	numa int64
}

// on reports whether an option is set and not 0.
func (m *model) on(option string) bool {
	v, _ := strconv.Atoi(m.options[option])
	return v != 0
}

// width is how many links join each GPU with each other, 0 where they differ.
func (m *model) width() uint8 {
	n, w := len(m.gpus), uint8(0)
	for i, links := range m.xgmi {
		switch {
		case i/n == i%n:
		case links == 0 || w != 0 && links != w:
			return 0
		default:
			w = links
		}
	}
	return w
}

// gigaIO is the name of the model that is matched apart from the others; hives is that of the model whose
// rings machines of four hives of four take.
const (
	gigaIO = "GIO"
	hives  = "68"
)

// models reads text, once.
var models = sync.OnceValue(func() []*model {
	var all []*model
	for _, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if word == "model" {
			all = append(all, &model{name: rest, options: map[string]string{}})
			continue
		}
		if word != "" {
			all[len(all)-1].read(word, rest)
		}
	}
	return all
})

// named finds a model. No input reaches it: names are those of this package's own rows, which
// TestGraphsAreRCCLs takes, and lines of the embedded file are read whole by TestModelsAreWhole, so
// that a panic here or in read is a defect of the program.
func named(name string) *model {
	for _, m := range models() {
		if m.name == name {
			return m
		}
	}
	panic("preset: no model " + name)
}

func (m *model) read(word, rest string) {
	switch word {
	case "shape":
		if _, err := fmt.Sscanf(rest, "line=%d cpus=%d links=%d pattern=%s", &m.line, &m.cpus, &m.links,
			&m.pattern); err !=
			nil {
			panic("preset: shape of model " + m.name + ": " + err.Error())
		}
	case "gpus":
		m.gpus = devices(rest)
	case "nics":
		m.nics = devices(rest)
	case "xgmi":
		for _, c := range strings.ReplaceAll(rest, " ", "") {
			m.xgmi = append(m.xgmi, uint8(c-'0'))
		}
	case "near":
		for _, w := range strings.Fields(rest) {
			m.near = append(m.near, topo.ParseLevel(w).Value)
		}
	case "options":
		for _, o := range strings.Fields(rest) {
			k, v, _ := strings.Cut(o, "=")
			m.options[k] = v
		}
	case "ring":
		m.rings = append(m.rings, rest)
	case "tail2":
		m.tail2 = append(m.tail2, rest)
	case "tail1":
		m.tail1 = append(m.tail1, rest)
	case "rail":
		m.rails = append(m.rails, rest)
	case "tree":
		if rest != "" {
			m.trees = append(m.trees, rest)
		}
	}
}

func devices(list string) (out []device) {
	for _, w := range strings.Fields(list) {
		bus, numa, _ := strings.Cut(w, ":")
		b, _ := strconv.ParseInt(bus, 16, 64)
		n, _ := strconv.ParseInt(numa, 10, 64)
		out = append(out, device{b, n})
	}
	return out
}
