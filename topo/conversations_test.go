package topo_test

import (
	"testing"

	"github.com/simccl/simccl/dev/ruletest"
)

// TestConversations: testdata/rules says which rules.
func TestConversations(t *testing.T) { ruletest.Machines(t) }
