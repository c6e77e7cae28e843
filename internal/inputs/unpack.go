package inputs

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxNesting is how often a content may be compressed.
const maxNesting = 3

// zstdWindow is how far back a frame may refer, as the zstd command's default.
const zstdWindow = 128 << 20

// unpack takes a content out of gzip, zstd and bzip2, as far as Look. What is cut or corrupt
// gives what comes before.
func unpack(data []byte) (text []byte, wrapped []string) {
	for range maxNesting {
		var in io.Reader
		var err error
		name := ""
		switch {
		case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
			name = "gzip"
			in, err = gzip.NewReader(bytes.NewReader(data))
		case bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}):
			name = "zstd"
			var z *zstd.Decoder
			if z, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true)); err == nil {
				defer z.Close()
				in = z
			}
		case bytes.HasPrefix(data, []byte("BZh")):
			name, in = "bzip2", bzip2.NewReader(bytes.NewReader(data))
		default:
			return data, wrapped
		}
		if err != nil {
			return data, wrapped
		}
		out, _ := io.ReadAll(io.LimitReader(in, Look))
		data, wrapped = out, append(wrapped, name)
	}
	return data, wrapped
}
