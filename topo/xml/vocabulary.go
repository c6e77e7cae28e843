package topoxml

import (
	"fmt"
	"maps"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
)

// vocabulary lists the elements and attributes that a library (NCCL or RCCL) reads in a topology file.
type vocabulary struct {
	rules    *rules.Ruleset // that name the library in messages
	version  int            // of the file
	elements int            // that it reads
	known    map[string]map[string]valueKind
	inside   map[string][]string
	required map[string][]string
}

// vocabularyOf returns the known elements and attributes of NCCL's topology files, or those changed for
// RCCL's: gcn and xgmi are added, nvlink and c2c removed.
func vocabularyOf(l rules.Library) *vocabulary {
	v := &vocabulary{rules: rules.Default(), version: 1, elements: ncclElements, known: known, inside: inside,
		required: required}
	if l == rules.NCCL {
		return v
	}
	v.rules, v.version, v.elements = rules.DefaultRCCL(), 2, rcclElements
	v.known, v.inside, v.required = maps.Clone(known), maps.Clone(inside), maps.Clone(required)
	v.known["gpu"] = maps.Clone(known["gpu"])
	v.known["gpu"]["gcn"], v.known["gpu"]["arch"] = text, integer
	v.known["xgmi"], v.inside["xgmi"] = known["nvlink"], inside["nvlink"]
	v.required["gpu"], v.required["xgmi"] = []string{"gcn", "arch", "sm"}, []string{"count", "tclass"}
	for _, other := range []string{"nvlink", "c2c"} { // graph/xml.cc:351 of RCCL 2.30.4
		delete(v.known, other)
	}
	return v
}

// version complains of a version that the library does not read.
func (c *checker) version() {
	e := c.spec.Root
	v, ok := e.Get("version")
	if _, whole := cnum.Int(v); !ok || !whole {
		return
	}
	p, lib := c.root, c.v.rules.Library.String()
	switch {
	case c.v.rules.Library == rules.RCCL && !decl.AMD(e):
		c.fail(p, "version", "version 2 is that of RCCL's files, whose GPUs have gcn and arch; none has here",
			`write version="1" if the file is NCCL's, or give the file that RCCL wrote`)
	case e.Int("version", 0) == c.v.version:
	case c.v.rules.Library == rules.RCCL:
		c.fail(p, "version",
			fmt.Sprintf("the file has GPUs of AMD (gcn, arch or xgmi), and RCCL reads version %d "+
				"only", c.v.version), fmt.Sprintf(`write version="%d"`, c.v.version))
	default:
		c.fail(p, "version", fmt.Sprintf("only version %d is known, to %s as well", c.v.version, lib),
			fmt.Sprintf(`write version="%d" if the file is %s's`, c.v.version, lib))
	}
}
