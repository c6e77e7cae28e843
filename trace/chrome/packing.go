package chrome

import (
	"bytes"
	"compress/flate"
	"strings"
)

// packing is how a file is compressed.
type packing uint8

const (
	plain packing = iota
	gzipped
	zstandard
)

// packingOf is what a name asks for.
func packingOf(path string) packing {
	switch {
	case strings.HasSuffix(path, ".gz"):
		return gzipped
	case strings.HasSuffix(path, ".zst"):
		return zstandard
	}
	return plain
}

// gzipHead is a gzip header (RFC 1952, 2.3) without name and time: deflate, fastest,
// of unknown system; gzipEnd an empty last block (RFC 1951, 3.2.6).
var (
	gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}
	gzipEnd  = []byte{3, 0}
)

// packer returns what one goroutine compresses portions with, each by itself: nil
// where nothing is. Blocks of deflate follow each other in one gzip member; frames of
// zstd do in a file (RFC 8878, 3.1).
func (p packing) packer() func(dst, text []byte) []byte {
	switch p {
	case gzipped:
		return deflate()
	case zstandard:
		return zstandards()
	}
	return nil
}

func deflate() func(dst, text []byte) []byte {
	var zip *flate.Writer
	return func(dst, text []byte) []byte {
		out := bytes.NewBuffer(dst)
		if zip == nil {
			zip, _ = flate.NewWriter(out, flate.BestSpeed) // the level is valid
		} else {
			zip.Reset(out)
		}
		_, _ = zip.Write(text) // to memory
		_ = zip.Flush()        // ends on a byte, so that the next one's data can follow
		return out.Bytes()
	}
}
