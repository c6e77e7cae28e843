package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestValueAfterABlankIsHinted: the value of a flag that may stay without one is taken after = alone; after a
// blank it is an argument too many, and the error says how it is written.
func TestValueAfterABlankIsHinted(t *testing.T) {
	for line, want := range map[string]string{
		"--how some":  `did you mean --how=some?`,
		"some":        `unexpected argument "some"`,
		"--flag some": `unexpected argument "some"`,
	} {
		done := func(*cobra.Command, []string) error { return nil }
		c := &cobra.Command{Use: "do", Args: Exactly(), RunE: done}
		c.Flags().String("how", "", "")
		c.Flags().Bool("flag", false, "")
		c.Flags().Lookup("how").NoOptDefVal = "all"
		c.SetArgs(strings.Fields(line))
		c.SilenceErrors, c.SilenceUsage = true, true
		if err := c.Execute(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
