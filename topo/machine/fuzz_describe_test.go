package machine

import (
	"testing"

	topoxml "github.com/simccl/simccl/topo/xml"
)

// FuzzDescribe: a topology is refused, or its description is a Spec that makes as many GPUs.
func FuzzDescribe(f *testing.F) {
	if s, err := Parse([]byte(small), "x.json"); err == nil {
		root, _ := s.Generate()
		f.Add(topoxml.Write(root))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := topoxml.Parse(data, "f.xml")
		if err != nil {
			return
		}
		s, err := Describe(spec.Root, "f")
		if err != nil {
			return
		}
		root, err := s.Generate()
		if err != nil {
			t.Fatalf("described, but not generated: %v", err)
		}
		if a, b := len(spec.Root.All("gpu")), len(root.All("gpu")); b > a {
			t.Errorf("%d GPUs of %d", b, a)
		}
	})
}
