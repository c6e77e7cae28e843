package decl

import (
	"slices"

	"github.com/simccl/simccl/rules"
)

// Library finds out whose files a declaration is in the form of: RCCL's have version 2, and elements and
// attributes of AMD's GPUs.
func (s *Spec) Library() rules.Library {
	if s != nil && s.Root != nil && (s.Root.Int("version", 0) == 2 || AMD(s.Root)) {
		return rules.RCCL
	}
	return rules.NCCL
}

// AMD reports whether an element of a tree has something that only RCCL reads.
func AMD(e *Element) bool {
	if e.Name == "xgmi" {
		return true
	}
	if e.Name == "gpu" {
		_, gcn := e.Get("gcn")
		_, arch := e.Get("arch")
		if gcn || arch {
			return true
		}
	}
	return slices.ContainsFunc(e.Children, AMD)
}
