package chrome

import (
	"errors"
	"io"
	"testing"
)

// TestMemorySpool reads as a file does: what is there, and the end only where less is there than asked for.
func TestMemorySpool(t *testing.T) {
	m := &memorySpool{}
	for _, text := range []string{"abc", "", "def"} {
		if n, err := m.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, c := range []struct {
		n    int
		off  int64
		want string
		end  bool
	}{{6, 0, "abcdef", false}, {3, 2, "cde", false}, {1, 5, "f", false}, {2, 5, "f", true},
		{7, 0, "abcdef", true},
		{1, 6, "", true}, {1, 7, "", true}, {0, 3, "", false}} {
		b := make([]byte, c.n)
		n, err := m.ReadAt(b, c.off)
		if string(b[:n]) != c.want || errors.Is(err, io.EOF) != c.end || err != nil && !c.end {
			t.Errorf("%d bytes from %d: %q, %v", c.n, c.off, b[:n], err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if n, err := m.ReadAt(make([]byte, 1), 0); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d %v", n, err)
	}
}
