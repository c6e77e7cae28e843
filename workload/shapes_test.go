package workload

import "testing"

// TestShapesOfText: an operation, three or four numbers, and what follows, each once it means something.
func TestShapesOfText(t *testing.T) {
	name := shapeNames[1]
	for text, want := range map[string]*Shape{
		name + ":2x3x4":                 {Op: 1, M: 2, N: 3, K: 4, Count: 1},
		name + ":2x3x4x5":               {Op: 1, M: 2, N: 3, K: 4, Count: 5},
		name + ":0x3x4":                 {Op: 1, M: 0, N: 3, K: 4, Count: 1},
		name + ":281474976710656x3x4":   {Op: 1, M: 1 << 48, N: 3, K: 4, Count: 1},
		name + ":2x3x4:sum1":            {Op: 1, M: 2, N: 3, K: 4, Count: 1, Sums: 1},
		name + ":2x3x4:sum64:quantised": {Op: 1, M: 2, N: 3, K: 4, Count: 1, Sums: 64, Quantised: true},
		name + ":281474976710657x3x4":   nil,
		name + ":2x3":                   nil,
		name + ":2x3x4x5x6":             nil,
		name + ":-2x3x4":                nil,
		name + ":2xax4":                 nil,
		name + ":2x3x4:sum0":            nil,
		name + ":2x3x4:sum65":           nil,
		name + ":2x3x4:sum":             nil,
		name + ":2x3x4:other":           nil,
		name:                            nil,
		"":                              nil,
		shapeNames[0] + ":2x3x4":        nil,
		"none:2x3x4":                    nil,
	} {
		s, ok := parseShape(text)
		if ok != (want != nil) || ok && s != *want {
			t.Errorf("%q: %+v %t, want %+v", text, s, ok, want)
		}
	}
}
