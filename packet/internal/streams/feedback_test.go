package streams

import "testing"

// TestFeedback: the first and the thousandth number of rand() of the GNU C library without a seed.
func TestFeedback(t *testing.T) {
	f, all := NewFeedback(1), make([]uint32, 1000)
	for i := range all {
		all[i] = f.Draw()
	}
	for i, want := range map[int]uint32{0: 1804289383, 1: 846930886, 4: 1957747793, 999: 1143565421} {
		if all[i] != want {
			t.Errorf("number %d is %d, not %d", i, all[i], want)
		}
	}
}
