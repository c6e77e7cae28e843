package chrome

import (
	"bytes"
	"compress/flate"
	"strings"
)

// packing is the compression of a file.
type packing uint8

const (
	plain packing = iota
	gzipped
	zstandard
)

// packingOf returns the compression that a file name's ending selects.
func packingOf(path string) packing {
	switch {
	case strings.HasSuffix(path, ".gz"):
		return gzipped
	case strings.HasSuffix(path, ".zst"):
		return zstandard
	}
	return plain
}

// gzipHead is a gzip header (RFC 1952, 2.3) without name and time: deflate, fastest, unknown system; gzipEnd
// an empty last block (RFC 1951, 3.2.6).
var (
	gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}
	gzipEnd  = []byte{3, 0}
)

// packer returns a function with which one goroutine compresses portions, each independently; nil without
// compression. Blocks of deflate follow each other in one gzip member; frames of zstd follow each other in a
// file (RFC 8878, 3.1).
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
		_, _ = zip.Write(text) // memory does not fail
		_ = zip.Flush()        // ends on a byte boundary, so that the next portion's data can follow
		return out.Bytes()
	}
}
