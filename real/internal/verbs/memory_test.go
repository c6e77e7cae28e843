package verbs

import (
	"testing"
	"unsafe"
)

// TestArenasHoldWhatIsTaken: values lie side by side in the arena's order at multiples of 64 bytes, a slice
// ends where its bytes do, and what does not fit is refused, to the byte.
func TestArenasHoldWhatIsTaken(t *testing.T) {
	a, err := NewArena(4097)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	if len(a.Bytes()) != 8192 {
		t.Fatalf("%d bytes, want whole pages", len(a.Bytes()))
	}
	base := AddressOf(a.Bytes())
	for i, c := range []struct {
		n  int
		at uintptr
	}{{1, 0}, {63, 64}, {64, 128}, {65, 192}, {0, 320}, {1, 320}} {
		b, err := a.Take(c.n)
		if err != nil {
			t.Fatal(err)
		}
		if at := AddressOf(b) - base; len(b) != c.n || cap(b) != c.n || c.n > 0 && at != c.at {
			t.Errorf("%d: %d bytes of %d at %d, want %d at %d", i, len(b), cap(b), at, c.n, c.at)
		}
	}
	v, err := Values[uint64](a, 3)
	if err != nil || len(v) != 3 || uintptr(unsafe.Pointer(&v[0]))-base != 384 {
		t.Fatalf("%v %v", v, err)
	}
	v[2] = 7
	if got := peek[uint64](Pointer(&v[0]), 16); got != 7 || a.Bytes()[400] != 7 {
		t.Errorf("the third value is %d", got)
	}
	if _, err := a.Take(8192 - 448 + 1); err == nil {
		t.Error("more than there is is taken")
	}
	if _, err := Values[uint64](a, (8192-448)/8); err != nil {
		t.Errorf("all that is left: %v", err)
	}
	if _, err := a.Take(1); err == nil {
		t.Error("a byte of nothing is taken")
	}
}

// TestHostMemoryHasItsLength, though what is mapped are pages.
func TestHostMemoryHasItsLength(t *testing.T) {
	b, free, err := HostMemory(5)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	if len(b) != 5 {
		t.Errorf("%d bytes", len(b))
	}
}
