package main

import (
	"github.com/simccl/simccl/internal/rules"
)

// ncclRules is the release whose rules hold where no machine says another.
func ncclRules() rules.Release { return rules.Default().Release }
