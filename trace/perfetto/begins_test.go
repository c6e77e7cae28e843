package perfetto

import "testing"

// TestBegins: a packet's first byte is a line feed, which JSON may begin with, too: then blanks and a bracket
// follow, and what is in it.
func TestBegins(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "\n": false, "\n\x05": true, "\n\x05\x08": true, "\t\x05\x08": false, "{\"a\"": false,
		"\n\n": false, "\n \t\r\n": false, "\n{": false, "\n{\"a\"": false, "\n {}": false,
		"\n[{": false, "\n[]": false,
		"\n  [ [": false, "\n{ \n": false, "\n{\x08": true, "\n[\x08\x01": true, "\n{ 5": true, "\nx": true,
	} {
		if got := Begins([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// TestInternedStringsHaveAnyNumber: those that count from 1 and others, of which the last holds.
func TestInternedStringsHaveAnyNumber(t *testing.T) {
	var n interns
	if n.get(0) != "" || n.get(1) != "" {
		t.Error("something of nothing")
	}
	for _, x := range []struct {
		id   uint64
		text string
	}{{1, "a"}, {2, "b"}, {1 << 40, "c"}, {4, "d"}, {3, "e"}, {1, "f"}, {4, "g"}} {
		if n.set(x.id, x.text); n.get(x.id) != x.text && x.id != 4 {
			t.Errorf("%d: %q, want %q", x.id, n.get(x.id), x.text)
		}
	}
	for id, want := range map[uint64]string{0: "", 1: "f", 2: "b", 3: "e", 1 << 40: "c", 5: ""} {
		if got := n.get(id); got != want {
			t.Errorf("%d: %q, want %q", id, got, want)
		}
	}
}
