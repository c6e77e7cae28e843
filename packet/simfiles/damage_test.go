package simfiles

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: of each file of a scenario every number is read, and what is none is refused at its
// line.
func TestNumbersThatAreNone(t *testing.T) {
	from := func(dir, replaced, text string) func(string) ([]byte, error) {
		return func(name string) ([]byte, error) {
			if path.Base(name) == replaced {
				return []byte(text), nil
			}
			return os.ReadFile(filepath.Join(dir, path.Base(name)))
		}
	}
	for _, name := range []string{"ls2x4.topo", "fat16.topo", "ring8.cm", "all_at_once"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			continue
		}
		topo, matrix := "ls2x4.topo", "ring8.cm"
		if strings.HasPrefix(name, "fat") {
			topo, matrix = "fat16.topo", "alltoall16.cm"
		}
		golden.Damage(t, golden.Input{Name: name, Text: string(text), Read: func(text string) error {
			_, err := LoadHtsim(matrix, topo, from("testdata", name, text))
			return err
		}})
	}
	without := strings.Fields("USE_DYNAMIC_PFC_THRESHOLD PINT_LOG_BASE PINT_PROB ENABLE_TRACE " +
		"QLEN_MON_START QLEN_MON_END FLOW_DEP") // keys without effect, as in the simulator
	for _, dir := range []string{"hpcc_ls", "iv_victim_pfc", "linkdown", "roce16"} {
		for _, name := range []string{"config.txt", "topo.txt", "flow.txt"} {
			text, err := os.ReadFile(filepath.Join("testdata", dir, name))
			if err != nil {
				continue
			}
			golden.Damage(t, golden.Input{Name: name, Text: string(text), Read: func(text string) error {
				_, err := LoadNS3("config.txt", from(filepath.Join("testdata", dir), name, text))
				return err
			}, Free: func(line string, _ int) bool {
				key, _, _ := strings.Cut(line, " ")
				return name == "config.txt" && slices.Contains(without, key)
			}})
		}
	}
}
