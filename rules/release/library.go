package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/simccl/simccl/rules"
)

// mark is what NCCL prints before its version (init.cc, VERSION_STRING); the text is
// in every build.
const mark = "NCCL version "

// ErrNoVersion says that a file has no text with NCCL's version in it.
var ErrNoVersion = errors.New(`no text "NCCL version" in it: not a library of NCCL`)

// OfLibrary reads the release from the bytes of libnccl.so or libnccl_static.a,
// without running them. Errors are those of reading, or ErrNoVersion.
func OfLibrary(r io.Reader) (rules.Release, error) {
	const window = 1 << 16
	buf := make([]byte, 0, 2*window)
	for {
		n, err := io.ReadFull(r, buf[len(buf):len(buf)+window])
		buf = buf[:len(buf)+n]
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return rules.Release{}, fmt.Errorf("read the library: %w", err)
		}
		if v, ok := find(buf); ok {
			return v, nil
		}
		if last {
			return rules.Release{}, ErrNoVersion
		}
		keep := min(len(buf), len(mark)+32) // a text may go over the end of a window
		buf = buf[:copy(buf, buf[len(buf)-keep:])]
	}
}

// find looks for the mark with a version behind it.
func find(b []byte) (rules.Release, bool) {
	for {
		i := bytes.Index(b, []byte(mark))
		if i < 0 {
			return rules.Release{}, false
		}
		b = b[i+len(mark):]
		end := 0
		for end < len(b) && end < 16 && (b[end] == '.' || b[end] >= '0' && b[end] <= '9') {
			end++
		}
		if v, err := rules.ParseRelease(string(b[:end])); err == nil && end < len(b) {
			return v, true
		}
	}
}
