package inputs

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/simccl/simccl/internal/envelope"
)

// maxNesting is how often a content may be compressed.
const maxNesting = 3

// zstdWindow is how far back a frame may refer, as the zstd command's default.
const zstdWindow = 128 << 20

// unpack takes a content out of gzip, zstd and bzip2, as far as Look. What is cut or corrupt
// gives what comes before: beginnings of files are asked about, where envelope.Unpack wants
// whole ones.
func unpack(data []byte) (text []byte, wrapped []string) {
	for range maxNesting {
		var in io.Reader
		var err error
		switch envelope.Packed(data) {
		case "gzip":
			in, err = gzip.NewReader(bytes.NewReader(data))
		case "zstd":
			var z *zstd.Decoder
			if z, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1),
				zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true)); err == nil {
				defer z.Close()
				in = z
			}
		case "bzip2":
			in = bzip2.NewReader(bytes.NewReader(data))
		default:
			return data, wrapped
		}
		if err != nil {
			return data, wrapped
		}
		out, _ := io.ReadAll(io.LimitReader(in, Look))
		data, wrapped = out, append(wrapped, envelope.Packed(data))
	}
	return data, wrapped
}
