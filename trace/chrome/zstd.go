//go:build !js

package chrome

import "github.com/klauspost/compress/zstd"

const writesZstd = true

func zstandards() func(dst, text []byte) []byte {
	// the options are valid
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	return func(dst, text []byte) []byte { return z.EncodeAll(text, dst) }
}
