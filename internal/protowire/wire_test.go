package protowire

import (
	"errors"
	"slices"
	"testing"
)

// TestNextReadsWhatIsAppended: fields come back in order, and a message that is cut anywhere
// else than between fields ends with ErrShort.
func TestNextReadsWhatIsAppended(t *testing.T) {
	msg := AppendNumber(nil, 1, 300)
	ends := []int{0, len(msg)}
	msg = AppendDouble(msg, 2, 1.5)
	ends = append(ends, len(msg))
	msg = AppendBytes(msg, 1<<29-1, "text")
	for cut := range len(msg) + 1 {
		var err error
		var n int
		for rest := msg[:cut]; len(rest) > 0 && err == nil; {
			var f Field
			if f, rest, err = Next(rest); err == nil {
				n++
				if f.Number == 1<<29-1 && string(f.Bytes) != "text" || f.Number == 1 && f.Value != 300 {
					t.Errorf("%+v", f)
				}
			}
		}
		whole := slices.Contains(append(ends, len(msg)), cut)
		if whole != (err == nil) || err != nil && !errors.Is(err, ErrShort) {
			t.Errorf("cut at %d after %d fields: %v", cut, n, err)
		}
	}
}

// TestNextRefusesWhatIsNoField: field 0, a number beyond the largest, a group and an integer
// of more than ten bytes are no fields.
func TestNextRefusesWhatIsNoField(t *testing.T) {
	long := []byte{8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}
	for _, b := range [][]byte{{0}, Tag(nil, 1<<29, Varint), Tag(nil, 1, 3), long} {
		if _, _, err := Next(b); !errors.Is(err, ErrField) {
			t.Errorf("% x: %v", b, err)
		}
	}
}
