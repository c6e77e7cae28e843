package cuda

import "testing"

// A session's end and the flag's owner may meet in either order: a flag that is
// set late must not write to memory that is freed. The driver of tests lets
// no code touch what was freed, so that such a write ends the test binary.
func TestAFlagSetLateTouchesNothing(t *testing.T) {
	dev, control := madeUp(t)
	for range 100 {
		s, err := NewStop(dev)
		if err != nil {
			t.Fatal(err)
		}
		set := make(chan struct{})
		go func() {
			s.Set()
			close(set)
		}()
		if err := s.Close(dev); err != nil {
			t.Fatal(err)
		}
		<-set
		s.Set()
		if err := s.Close(dev); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	}
	if n := control.Used(t, 0); n != 0 {
		t.Errorf("%d bytes are still taken", n)
	}
}
