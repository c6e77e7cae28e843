package main

import (
	"fmt"
	"os"

	"github.com/simccl/simccl/config"
)

func envPage() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: env FILE")
		os.Exit(6)
	}
	if err := os.WriteFile(os.Args[1], []byte(config.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "env:", err)
		os.Exit(1)
	}
}
