package envelope

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// PackedError is a file that cannot be unpacked: damaged, or of a kind that is not
// read.
type PackedError struct {
	Kind string // "gzip"
	Err  error  // nil for a kind that is not read
}

func (e *PackedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("the file is packed (%s); unpack it, or pack it with gzip or zstd", e.Kind)
	}
	return fmt.Sprintf("the file is packed (%s) and cannot be unpacked: %v", e.Kind, e.Err)
}

// Unwrap implements errors.Unwrap.
func (e *PackedError) Unwrap() error { return e.Err }

// SizeError is a file that unpacks to more than Most bytes.
type SizeError struct {
	Kind string
	Most int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("the file unpacks (%s) to more than %d MiB; keep the part that matters", e.Kind,
		e.Most>>20)
}

// maxWindow bounds the memory that a zstd frame may ask for.
const maxWindow = 1 << 27

// packings are the kinds by their first bytes; those without a reader are refused by
// name.
var packings = []struct {
	kind, magic string
	open        func(io.Reader) (io.ReadCloser, error)
}{
	{"gzip", "\x1f\x8b", func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }},
	{"zstd", "\x28\xb5\x2f\xfd", func(r io.Reader) (io.ReadCloser, error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}},
	{"bzip2", "BZh", func(r io.Reader) (io.ReadCloser, error) {
		return io.NopCloser(bzip2.NewReader(r)), nil
	}},
	{"zlib", "\x78\x9c", zlib.NewReader},
	{"xz", "\xfd7zXZ\x00", nil}, {"lz4", "\x04\x22\x4d\x18", nil}, {"7z", "7z\xbc\xaf\x27\x1c", nil},
	{"zip", "PK\x03\x04", nil},
}

// Packed names the compression of a file, "" for none.
func Packed(data []byte) string {
	for _, p := range packings {
		if bytes.HasPrefix(data, []byte(p.magic)) {
			return p.kind
		}
	}
	return ""
}

// Unpacker returns a reader of the decompressed stream; kind is a result of Packed. It uses at most 128 MiB
// of memory. The error is a *PackedError.
func Unpacker(kind string, r io.Reader) (io.ReadCloser, error) {
	for _, p := range packings {
		if p.kind != kind || p.open == nil {
			continue
		}
		z, err := p.open(r)
		if err != nil {
			return nil, &PackedError{kind, err}
		}
		return z, nil
	}
	return nil, &PackedError{Kind: kind}
}

// maxPacked is the maximum number of nested compressions.
const maxPacked = 3

func (t *Text) unpack(data []byte, most int) ([]byte, error) {
	for range maxPacked {
		kind := Packed(data)
		if kind == "" {
			return data, nil
		}
		var err error
		if data, err = inflate(kind, data, most); err != nil {
			return nil, err
		}
		t.removed(kind)
	}
	return data, nil
}

func inflate(kind string, data []byte, most int) ([]byte, error) {
	z, err := Unpacker(kind, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, int64(most)+1))
	err = errors.Join(err, z.Close())
	switch {
	case len(out) > most:
		return nil, &SizeError{kind, most}
	case err != nil:
		return nil, &PackedError{kind, err}
	}
	return out, nil
}

// decode converts the encodings that editors and PowerShell write to UTF-8. It recognises them by their byte
// order mark, or by the zero bytes of ASCII in 16 bits.
func (t *Text) decode(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		t.removed("byte order mark")
		return string(data[3:])
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return t.wide(data[2:], 0)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return t.wide(data[2:], 1)
	case zeros(data, 1):
		return t.wide(data, 0)
	case zeros(data, 0):
		return t.wide(data, 1)
	}
	return string(data)
}

// zeros reports whether a text begins with ASCII characters of two bytes whose zero
// is at an offset.
func zeros(data []byte, at int) bool {
	const sample = 32
	n := min(len(data)/2, sample)
	for i := range n {
		if data[2*i+at] != 0 || data[2*i+1-at] == 0 || data[2*i+1-at] >= utf8.RuneSelf {
			return false
		}
	}
	return n >= 4
}

// wide decodes UTF-16 whose low byte is the first of a pair (0) or the second (1); a
// last odd byte is dropped.
func (t *Text) wide(data []byte, low int) string {
	t.removed("UTF-16")
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = uint16(data[2*i+low]) | uint16(data[2*i+1-low])<<8
	}
	return string(utf16.Decode(units))
}
