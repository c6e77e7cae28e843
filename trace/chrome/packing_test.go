package chrome

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/simccl/simccl/trace"
)

// written is what a Writer of a name makes of some thousands of events.
func written(t *testing.T, name string) []byte {
	t.Helper()
	var file memoryFile
	w := To(&file, name, Options{})
	track := w.Track(trace.Track{Process: 1, ProcessName: "p", Thread: 2, ThreadName: "t"})
	for i := range 20000 {
		w.Emit(&trace.Event{Track: track, Start: trace.Tick * 10000, Name: "e",
			Args: []trace.Arg{trace.Int("i", int64(i))}, Phase: trace.Instant})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A file of zstd has the text of the plain one, for readers of zstd and for ours;
// where it is cut or changed, the fault has its place.
func TestZstd(t *testing.T) {
	for _, ending := range []string{".json", ".pftrace"} {
		text, packed := written(t, "t"+ending), written(t, "t"+ending+".zst")
		z, err := zstd.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if z.Close(); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes of text come back as %d: %v", ending, len(text), len(got), err)
		}
		events := 0
		info, err := Read(bytes.NewReader(packed), func(*Event) error { events++; return nil })
		if err != nil || !info.Compressed || events < 20000 {
			t.Errorf("%s: %d events are read, %v", ending, events, err)
		}
	}
	packed := written(t, "t.json.zst")
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-2] ^= 0x55 // of a checksum
	for _, c := range []struct {
		name, says string
		data       []byte
	}{{"cut", "the file is cut there", packed[:len(packed)/2]}, {"changed", "is corrupt", flipped},
		{"followed", "is corrupt", append(bytes.Clone(packed), "junk"...)}} {
		_, err := Read(bytes.NewReader(c.data), func(*Event) error { return nil })
		var fault *GzipError
		if !errors.As(err, &fault) || !strings.Contains(fault.Problem, c.says) || fault.Offset <= 0 {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
