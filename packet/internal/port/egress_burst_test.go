package port

import (
	"testing"

	"github.com/simccl/simccl/packet/internal/frames"
)

// TestBurstSends: frames start when the port is free and they have come; the row ends where one would start
// too late, and where the size of one is not known.
func TestBurstSends(t *testing.T) {
	lasts, sizes := [2]int64{80, 10}, [2]uint16{1000, 60}
	of := func(at int64, flags uint8, size uint16) frames.Frame {
		return frames.Frame{At: at, Flags: flags, Size: size}
	}
	some := []frames.Frame{of(5, 0, 1000), of(6, 1, 60), of(200, 0, 1000), of(201, 0, 1000), of(202, 1, 60)}
	p := Burst{Free: 20, End: 281, Delay: 7, Lasts: &lasts, Sizes: &sizes}
	p.Send(some)
	if p.Sent != 4 || p.Acks != 1 || p.Free != 360 {
		t.Errorf("sent %d, of them %d acknowledgements, free at %d; want 4, 1, 360", p.Sent, p.Acks, p.Free)
	}
	for i, want := range []int64{107, 117, 287, 367, 202} {
		if some[i].At != want {
			t.Errorf("frame %d is at the end at %d, want %d", i, some[i].At, want)
		}
	}
	p = Burst{End: 1000, Lasts: &lasts, Sizes: &sizes}
	if p.Send([]frames.Frame{of(0, 1, 60), of(0, 0, 999)}); p.Sent != 1 || p.Free != 10 {
		t.Errorf("sent %d up to %d of which the second has another size, want 1 up to 10", p.Sent, p.Free)
	}
}
