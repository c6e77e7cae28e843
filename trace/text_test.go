package trace

import (
	"bytes"
	"strings"
	"testing"
)

const textStory = `track 1000003/10000 "rank 3" "node0" "ch 00 send · step 0" 3 10000
track 3000000/1 "links" "" "leaf0→spine1" 200000 1
slice 1000003/10000 6500000 10833000 "NET" "SendWait" Step=0 transport="NET/IB" share=0.5 "odd key"=1.0
flow> 1000003/10000 6501000 "flow" "xfer" 1
flow< 1000003/10000 18099000 "flow" "xfer" 1
count 3000000/1 6500000 "" "leaf0→spine1 GB/s" GB/s=48.5
point 1000003/10000 0 "sim" "tuner" chosen="RING \"LL\""
`

func reprint(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	x := NewText(&out)
	if err := ParseText(strings.NewReader(text), x); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTextRoundTrip(t *testing.T) {
	if got := reprint(t, textStory); got != textStory {
		t.Errorf("got\n%s", got)
	}
}

func TestTextThroughTeeAndMemory(t *testing.T) {
	var a, b bytes.Buffer
	var mem Memory
	x, y := NewText(&a), NewText(&b)
	tee := Synced(Tee(x, &mem, y))
	if err := ParseText(strings.NewReader(textStory), tee); err != nil {
		t.Fatal(err)
	}
	if err := tee.Close(); err != nil {
		t.Fatal(err)
	}
	if a.String() != textStory || b.String() != textStory || len(mem.Events) != 5 || len(mem.Tracks) != 2 {
		t.Errorf("tee lost something: %d events", len(mem.Events))
	}
}

func TestTextErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"# comment\n\nwhat 1/2 3", `3: "what" is no event`},
		{"slice 1/2 0 1 \"\" \"\"", "1: track 1/2 is not declared"},
		{"track 12 \"\"", `1: "12": pid/tid expected`},
		{"track 1/2 x", "1: \"x\": a string in double quotes"},
		{"track 1/2 \"\" \"\" \"\" 1 y", `1: "y": an integer`},
		{"track 1/2 \"\" \"\" \"\" 1 1\npoint 1/2 0 \"\" \"\" k", "2: \"k\": key=value"},
		{"track 1/2 \"\" \"\" \"\" 1 1\npoint 1/2 0 \"\" \"\" k=v", "2: \"v\": a number"},
		{"track 1/2 \"\" \"\" \"\" 1 1 z", "1: \"z\" after"},
	} {
		err := ParseText(strings.NewReader(c.text), Discard)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// Whatever is accepted is printed back to something that reads the same.
func FuzzTraceText(f *testing.F) {
	f.Add(textStory)
	f.Fuzz(func(t *testing.T, text string) {
		var once, twice bytes.Buffer
		x := NewText(&once)
		if ParseText(strings.NewReader(text), x) != nil {
			return
		}
		_ = x.Close()
		y := NewText(&twice)
		if err := ParseText(bytes.NewReader(once.Bytes()), y); err != nil {
			t.Fatalf("own text is refused: %v\n%s", err, once.String())
		}
		_ = y.Close()
		if once.String() != twice.String() {
			t.Fatalf("changed:\n%s\n%s", once.String(), twice.String())
		}
	})
}
