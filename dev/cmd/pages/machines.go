package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"strings"

	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/machine"
)

//go:embed head.md
var head string

func machinesPage() {
	if len(os.Args) == 4 && os.Args[1] == "-beside" {
		if err := writeBeside(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "machines:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: machines FILE, machines -beside DIR FILE")
		os.Exit(6)
	}
	if err := os.WriteFile(os.Args[1], []byte(pageOfMachines()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "machines:", err)
		os.Exit(1)
	}
}

func pageOfMachines() string {
	var b strings.Builder
	b.WriteString(strings.Replace(head, "BESIDE\n", beside, 1))
	b.WriteString("| name | also | machine | network |\n|---|---|---|---|\n")
	for _, m := range builtin.List() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, strings.Join(m.Aliases, ", "), m.Title,
			network(&m.Network))
	}
	b.WriteString("\n## Sources\n\n*Estimated*: no source states it.\n\n" +
		"| name | of | source |\n|---|---|---|\n")
	for _, m := range builtin.List() {
		for _, f := range m.Facts {
			mark := ""
			if f.Estimated {
				mark = " (estimated)"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", m.Name, f.Of, f.Source, mark)
		}
	}
	return b.String()
}

// network is what is known of a network, in words.
func network(n *machine.Network) string {
	words := []string{cmp.Or(n.Kind, "-")}
	if n.Rails > 0 {
		words = append(words, fmt.Sprintf("%d rails", n.Rails))
	}
	if n.Radix > 0 {
		words = append(words, fmt.Sprintf("leaf switches of %d ports", n.Radix))
	}
	if n.Oversub > 0 {
		words = append(words, fmt.Sprintf("%g:1", n.Oversub))
	}
	return strings.Join(words, ", ")
}
