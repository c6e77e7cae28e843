package cli

import (
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
)

// parseNodes parses the nodes of a machine: FILE, or FILE:COUNT,FILE:COUNT. count is the number of nodes of a
// FILE without COUNT, 0 the default. A file that exists under the whole name FILE:COUNT takes precedence.
// Errors are of package fail.
func parseNodes(line string, count int, exists func(name string) bool) ([]scenario.Nodes, error) {
	if line == "" {
		if count == 0 {
			return nil, nil
		}
		return []scenario.Nodes{{Count: count}}, nil
	}
	var out []scenario.Nodes
	entries := strings.Split(line, ",")
	for _, entry := range entries {
		n, err := parseCount(entry, exists)
		if err != nil {
			return nil, err
		}
		switch {
		case n.Count > 0 && count > 0:
			return nil,
				fail.Usage("{Topo} %s: the counts after the colons already say how many nodes; leave "+
					"{Nodes} out", line)
		case n.Count == 0 && len(entries) == 1:
			n.Count = count
		}
		out = append(out, n)
	}
	return out, nil
}

// parseCount cuts FILE:COUNT; a file that exists under the whole name wins.
func parseCount(entry string, exists func(name string) bool) (scenario.Nodes, error) {
	n := scenario.Nodes{Topo: entry}
	if entry == "" {
		return n, fail.Usage("{Topo}: a file name is missing")
	}
	i := strings.LastIndexByte(entry, ':')
	if i < 1 || exists(entry) {
		return n, nil
	}
	if strings.Contains(entry, "://") {
		return n, fail.Usage("{Topo} %s: files are read here, not addresses; fetch it first, or write a "+
			"name of simccl topo list", entry)
	}
	count, err := strconv.Atoi(entry[i+1:])
	if err != nil || count < 1 {
		return n,
			fail.Usage("{Topo} %s: the number of nodes after the colon must be at least 1, e.g. dgx.xml:4",
				entry)
	}
	return scenario.Nodes{Topo: entry[:i], Count: count}, nil
}
