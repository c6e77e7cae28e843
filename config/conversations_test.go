package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/rules"
)

// TestConversations: variables in, the settings of rooms out.
//
//	set [release=V] [NAME]   variables, a case a line; with NAME the lines are values of it. What differs
//	                         from a release without any is printed, and the warnings
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			r, err := rules.For(ruletest.Value(d, "release", ""))
			if err != nil {
				return "error: " + err.Error()
			}
			plain, _ := load(t, config.Sources{Rules: r})
			var b strings.Builder
			for line := range strings.Lines(d.Input) {
				flags := strings.Fields(line)
				if name := ruletest.Word(d, 0); name != "" {
					flags = []string{name + "=" + strings.TrimSpace(line)}
				}
				c, warnings, err := config.Load(config.Sources{Rules: r, Flags: flags})
				said := "no change"
				if err != nil {
					said = "error: " + err.Error()
				} else if diff := strings.TrimSpace(ruletest.Changes(plain, c)); diff != "" {
					said = strings.ReplaceAll(diff, "\n", "; ")
				}
				fmt.Fprintf(&b, "%s: %s\n", strings.TrimSpace(line), said)
				for _, w := range warnings {
					fmt.Fprintf(&b, "  warns: %s\n", w)
				}
			}
			return b.String()
		}
	})
}
