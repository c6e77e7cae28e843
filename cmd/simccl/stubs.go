package main

import "github.com/spf13/cobra"

// Commands whose rooms are not built yet answer with a typed error.

func stub(a *app, use, short, missing string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, _ []string) error { return notYet(cmd.CommandPath(), missing) }}
}

func newBench(a *app) *cobra.Command { return stub(a, "bench", "Run on hardware", "the hardware runs") }
