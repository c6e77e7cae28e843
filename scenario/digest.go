package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/sim/gpu"
)

// Digest identifies a Spec by what it says and by the contents of its input
// files: equal digests give equal results. Paths, Name and Outputs do not enter
// it, nor does the order of settings; the settings from outside the Spec do.
func Digest(spec *Spec, opt Options) (string, error) {
	l, err := layout(spec, &opt)
	if err != nil {
		return "", err
	}
	if _, err := l.graphFile(); err != nil {
		return "", err
	}
	if _, err := l.tunerFile(); err != nil {
		return "", err
	}
	return l.site.digest(spec), nil
}

// digest hashes a loaded Spec.
func (m *Site) digest(spec *Spec) string {
	s := spec.Clone()
	s.Name, s.Outputs, s.Grid = "", Outputs{}, nil
	if !m.Draws(spec) { // where routes are hashed no seed is several
		s.Seed = spec.seed()
	}
	// Files are identified by their contents, variables by their effective values.
	for i := range s.Machine.Nodes {
		s.Machine.Nodes[i].Topo = ""
	}
	s.NCCL.Version = m.Config.Rules.Version()
	s.NCCL.Env, s.Machine.Class, s.Network.Fabric, s.Network.Class, s.Network.Hosts = nil, "", "", "", ""
	h := sha256.New()
	put := func(what string, data []byte) { fmt.Fprintf(h, "%s %d\n%s\n", what, len(data), data) }
	put("spec", s.JSON())
	put("topologies", []byte(m.Digest))
	put("class", m.classText(s.Workload.Buffers != "", s.Engine.Blocking > 0))
	if m.Network != nil {
		put("fabric", m.Network.Format())
	}
	put("graphs", m.graphs)
	if m.rows != nil {
		put("tuner", m.rows)
	}
	for _, v := range m.settings("") {
		if !slices.Contains(fileSettings, v[0]) {
			put("setting", []byte(v[0]+"="+v[1]))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// classText is the class's file with the parameters that an operation can depend on. The
// points of a sweep share it.
func (m *Site) classText(windows, blocking bool) []byte {
	m.textsMu.Lock()
	defer m.textsMu.Unlock()
	at := [2]bool{windows, blocking}
	if m.texts[at] == nil {
		if m.texts == nil {
			m.texts = map[[2]bool][]byte{}
		}
		m.texts[at] = m.Class().FormatOf(func(q gpu.Quantity) bool {
			return q.For == "" || q.For == "windows" && windows || q.For == "blocking" && blocking ||
				q.For == "network" && m.Class().Network != ""
		})
	}
	return m.texts[at]
}

// fileSettings name input files; the digest has their contents in place of their
// names.
var fileSettings = []string{"NCCL_CONF_FILE", "NCCL_GRAPH_FILE", "NCCL_TOPO_FILE", "NCCL_TUNER_CONFIG_FILE"}

// NamesFile reports whether a setting's value is the name of an input file.
func NamesFile(setting string) bool { return slices.Contains(fileSettings, setting) }

// WriteJSON writes a Result as one line of JSON.
func (r *Result) WriteJSON(w io.Writer) error { return writeJSON(w, r) }
