// Command genenv writes docs/ENV.md, the table of variables, to the file named.
package main

import (
	"fmt"
	"os"

	"github.com/simccl/simccl/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: genenv FILE")
		os.Exit(6)
	}
	if err := os.WriteFile(os.Args[1], []byte(config.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "genenv:", err)
		os.Exit(1)
	}
}
