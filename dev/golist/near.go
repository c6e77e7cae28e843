package golist

import (
	"maps"
	"slices"
)

// Package is one of a module, with what it and its tests import.
type Package struct {
	ImportPath, Dir                    string
	Module                             *struct{ Path string }
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// Tested reports whether the package has tests.
func (p *Package) Tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// Module is the packages of a module by import path.
type Module struct {
	Path     string
	Packages map[string]*Package
}

// Load lists the packages of the module in dir.
func Load(dir string) (*Module, error) {
	all, err := Packages[Package](Query{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		return nil, err
	}
	m := &Module{Packages: map[string]*Package{}}
	for _, p := range all {
		m.Packages[p.ImportPath] = p
		if p.Module != nil {
			m.Path = p.Module.Path
		}
	}
	return m, nil
}

// Rings are the packages whose tests a change of some packages can reach, by distance: those of the change,
// those that import one of these, and so on. A package whose tests alone import one of a ring is in the next
// ring, and nothing is reached through it. Packages without tests are left out, and what imports them is not.
func (m *Module) Rings(change []string) [][]string {
	ring := map[string]bool{}
	for _, p := range change {
		ring[p] = true
	}
	var out [][]string
	listed, reached := map[string]bool{}, maps.Clone(ring)
	for near := ring; len(near) > 0; {
		var list []string
		for _, p := range slices.Sorted(maps.Keys(near)) {
			if l := m.Packages[p]; !listed[p] && l != nil && l.Tested() {
				list = append(list, p)
			}
			listed[p] = true
		}
		out = append(out, list)
		ring, near = m.importers(ring, reached)
	}
	return out
}

// importers are the packages that import one of a ring and were not reached, and with them those whose tests
// alone do.
func (m *Module) importers(ring, reached map[string]bool) (next, near map[string]bool) {
	next, near = map[string]bool{}, map[string]bool{}
	in := func(imported string) bool { return ring[imported] }
	for name, p := range m.Packages {
		switch {
		case slices.ContainsFunc(p.Imports, in):
			if near[name] = true; !reached[name] {
				next[name], reached[name] = true, true
			}
		case slices.ContainsFunc(p.TestImports, in), slices.ContainsFunc(p.XTestImports, in):
			near[name] = true
		}
	}
	return next, near
}
