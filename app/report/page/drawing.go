package page

import (
	"strings"

	"github.com/simccl/simccl/topo"
)

// Marked is a machine as markup of a page, with some of its devices marked.
func Marked(s *topo.System, marked func(topo.NodeID) bool) string {
	return string(picture(&page{System: s, Host: "node0", marked: marked}, nil))
}

// Drawing is a machine as an SVG file: CPUs above, PCI trees below them, NVSwitches at
// the foot. Tooltips have names and bandwidths.
func Drawing(s *topo.System) string {
	text := string(picture(&page{System: s, Host: "node0"}, nil))
	open, rest, _ := strings.Cut(text, ">")
	open = strings.Replace(open, "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1)
	return open + "><style><![CDATA[" + Style() + "]]></style>" + rest + "\n"
}
