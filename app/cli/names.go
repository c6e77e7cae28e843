package cli

import (
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/rules"
)

// Rules returns the release whose rules apply if the machine does not name one.
func Rules() rules.Release { return rules.Default().Release }

// AsFlags names the flags of the command in place of the members that err names.
func (a *App) AsFlags(err error) error { return flags.Name(a.Given, err) }
