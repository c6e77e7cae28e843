package port

import "testing"

// TestPeaksAreOfDataClasses: a queue's bytes are the peak where no other data class waits; where one does it
// is the sum without class 0, which control frames have; a class 0 that grows counts by itself, and a peak
// does not fall.
func TestPeaksAreOfDataClasses(t *testing.T) {
	for _, c := range []struct {
		bytes   []int64
		class   uint8
		waiting uint16
		was     int64
		want    int64
	}{
		{[]int64{7, 100, 0, 0}, 1, 0b0010, 0, 100},
		{[]int64{7, 100, 0, 0}, 1, 0b0011, 0, 100}, // control waits, too
		{[]int64{7, 100, 30, 0}, 1, 0b0110, 0, 130},
		{[]int64{7, 100, 30, 1}, 2, 0b1111, 0, 131},
		{[]int64{7, 100, 30, 0}, 0, 0b0111, 0, 7},
		{[]int64{7, 100}, 1, 0b0011, 0, 100},
		{[]int64{7, 100, 0, 0}, 1, 0b0010, 101, 101},
	} {
		l := Link{Queues: make([]Queue, len(c.bytes)), Waiting: c.waiting, Peak: c.was}
		for i, n := range c.bytes {
			l.Queues[i].Bytes = n
		}
		if l.UpdatePeak(&l.Queues[c.class], c.class); l.Peak != c.want {
			t.Errorf("%+v: %d", c, l.Peak)
		}
	}
}
