package train

import "testing"

// TestSearch: hosts are looked at ever more rarely while none sends a train, and always once one does.
func TestSearch(t *testing.T) {
	var s Search
	looked := 0
	for range 100 {
		if !s.Rests() {
			looked++
		}
		s.Next()
	}
	if looked < 8 || looked > 11 {
		t.Errorf("looked at in %d of 100 windows", looked)
	}
	s.Moved = true
	if s.Next(); s.Rests() {
		t.Error("rests though one was sent")
	}
}
