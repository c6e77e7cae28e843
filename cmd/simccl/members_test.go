package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/dev/golden"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestMembersHaveFlags: every member that a text of package fail names in braces
// has a flag, which some command declares.
func TestMembersHaveFlags(t *testing.T) {
	declared := map[string]bool{}
	for _, c := range commands(newRoot(&app{}, "")) {
		for _, f := range flagsOf(c) {
			declared[f] = true
		}
	}
	member := regexp.MustCompile(`\{([A-Z]\w*)\}`)
	call := regexp.MustCompile(`fail\.(Usage|File|NotYet|Check)\(|^\s*\{.*"\{[A-Z]|"\{[A-Z]\w*\}"`)
	found := 0
	for _, dir := range []string{"nccltests/options", "app/bench", "real/bench", "real/perftest", "scenario", "study/packetrun"} {
		files, err := filepath.Glob(filepath.Join(golden.Root(t), dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.HasSuffix(name, "_test.go") || !call.MatchString(line) {
					continue
				}
				for _, m := range member.FindAllStringSubmatch(line, -1) {
					found++
					if flag := cli.FlagNames[m[1]]; !declared[flag] {
						t.Errorf("%s: {%s} is %q, which no command declares", filepath.Base(name), m[1], flag)
					}
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d members found", found)
	}
}

// flagsOf lists the flags of a command as they are written.
func flagsOf(c *cobra.Command) (out []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) { out = append(out, "--"+f.Name, "-"+f.Shorthand) })
	return out
}
