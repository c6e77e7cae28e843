// Command build compiles the libraries of simccl intercept into a folder: make shim.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/simccl/simccl/intercept/shim"
)

func main() {
	if err := build(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func build(args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return fmt.Errorf("write: build FOLDER [COMPILER]")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	return shim.Build(dir, append(args, "")[1])
}
