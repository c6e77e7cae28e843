package rings

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/topo/fabric"
)

// FormatError is a format that Write does not know.
type FormatError struct{ Format string }

// Error names the format.
func (e *FormatError) Error() string { return "no format " + e.Format }

// Write shows the channels over all ranks: "rings" as text, "json", or "dot" for
// Graphviz.
func Write(w io.Writer, c *connect.Layout, cl *fabric.Cluster, format string) error {
	switch format {
	case "rings":
		_, err := fmt.Fprint(w, Text(c, cl))
		return err
	case "dot":
		_, err := fmt.Fprint(w, Dot(c, cl))
		return err
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(JSON(c, cl))
	}
	return &FormatError{format}
}
