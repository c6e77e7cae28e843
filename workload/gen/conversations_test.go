package gen

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/dev/ruletest"
)

// TestConversations: a config.json in, the model out.
//
//	model     the members of the file, one a line
//	members   further ones, or others in place of these, after those of model: what they change
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		var base string
		was := &Model{}
		return func(t *testing.T, d *datadriven.TestData) string {
			text := d.Input
			switch d.Cmd {
			case "model":
				base, was = text, &Model{}
			case "members":
				text = replaced(base, text)
			default:
				d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			}
			m, err := ParseModel([]byte("{"+strings.ReplaceAll(text, "\n", ",\n")+"}"), "config.json")
			if err != nil {
				return "error: " + err.Error()
			}
			said := ruletest.Changes(was, m)
			if d.Cmd == "model" {
				was = m
			}
			return said
		}
	})
}

// replaced is base with members in place of those of their names, or behind them.
func replaced(base, text string) string {
	lines := strings.Split(base, "\n")
	for _, line := range strings.Split(text, "\n") {
		name, _, _ := strings.Cut(line, ":")
		at := len(lines)
		for i := range lines {
			if strings.HasPrefix(lines[i], name+":") {
				at = i
			}
		}
		if at == len(lines) {
			lines = append(lines, "")
		}
		lines[at] = line
	}
	return strings.Join(lines, "\n")
}
