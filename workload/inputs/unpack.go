package inputs

import (
	"bytes"
	"io"

	"github.com/simccl/simccl/internal/envelope"
)

// maxNesting is how often a content may be compressed.
const maxNesting = 3

// unpack takes a content out of gzip, zstd and bzip2, as far as Look. What is cut or corrupt
// gives what comes before: beginnings of files are asked about, where envelope.Open wants
// whole ones.
func unpack(data []byte) (text []byte, wrapped []string) {
	for range maxNesting {
		kind := envelope.Packed(data)
		if kind == "zlib" {
			return data, wrapped
		}
		in, err := envelope.Unpacker(kind, bytes.NewReader(data))
		if err != nil {
			return data, wrapped
		}
		data, _ = io.ReadAll(io.LimitReader(in, Look))
		_ = in.Close() // a cut content ends with a fault
		wrapped = append(wrapped, kind)
	}
	return data, wrapped
}
