package decision

import "testing"

// TestTwelveDifferencesAreShown: of a section's differences the first twelve are listed, and all are counted.
func TestTwelveDifferencesAreShown(t *testing.T) {
	var d Differences
	for n := 1; n <= 13; n++ {
		d.add("what", "was", "is")
		if want := min(n, 12); len(d.First) != want || d.Count != n {
			t.Errorf("%d listed, %d counted, want %d and %d", len(d.First), d.Count, want, n)
		}
	}
}
