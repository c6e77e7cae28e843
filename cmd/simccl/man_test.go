package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/root"
	"github.com/spf13/cobra/doc"
)

// manTo is where TestManPages keeps its pages, for make release; manDate is their date.
var (
	manTo   = flag.String("man", "", "keep manual pages in this folder")
	manDate = flag.String("man-date", "2026-11-22T00:00:00Z", "date of manual pages, RFC 3339")
)

// TestManPages: every command has a manual page, made of its help, so that the program
// itself need not know troff.
func TestManPages(t *testing.T) {
	dir := *manTo
	if dir == "" {
		dir = t.TempDir()
	}
	date, err := time.Parse(time.RFC3339, *manDate)
	if err != nil {
		t.Fatal(err)
	}
	tree := root.Command(&cli.App{})
	if err := doc.GenManTree(tree, &doc.GenManHeader{Title: "SIMCCL", Section: "1", Source: "simccl " +
		version, Manual: "simccl", Date: &date}, dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands(tree) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
