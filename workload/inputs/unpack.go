package inputs

import (
	"bytes"
	"io"

	"github.com/simccl/simccl/internal/envelope"
)

// maxNesting is the largest number of nested compressions.
const maxNesting = 3

// unpack decompresses gzip, zstd and bzip2, up to Look bytes. Of truncated or corrupt data it returns the
// part before the error: recognition sees only beginnings of files, while envelope.Open requires complete
// ones.
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
