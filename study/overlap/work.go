package overlap

import (
	"math"
	"regexp"
	"strconv"
	"sync"

	"github.com/simccl/simccl/workload"
)

var kernelName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(gemm|add)(\d+)(M?)$`) })

// work returns the demands of a kernel of the table: gemm4096 multiplies 4096 x 4096 matrices in 16 bits,
// add128M adds a number to 128 MiB of them, sdpa is causal attention of 64 heads with 2048 rows of 128
// elements.
func work(kind string, sms int32) workload.Work {
	w := workload.Work{Name: kind}
	if kind == "sdpa" {
		return attention(w, sms, 64, 2048, 128)
	}
	f := kernelName().FindStringSubmatch(kind)
	if f == nil {
		return w // its blocks are not known
	}
	n, err := strconv.ParseInt(f[2], 10, 64)
	switch {
	case err != nil || n < 1 || n > 1<<20:
	case f[1] == "gemm":
		w.FLOPs, w.Bytes, w.PerSM, w.Persistent, w.Cluster = 2*n*n*n, 6*n*n, 1, true, tileCluster
		w.Tiles = gemmTiles(n, sms)
		w.Blocks = int32(min(w.Tiles, int64(sms/tileCluster))) * tileCluster
	default:
		w.Bytes, w.Blocks, w.PerSM = 2*n<<20, int32(min(n<<20/2/1024, math.MaxInt32)), 16
	}
	return w
}

// Matrix products of cuBLAS 13 on sm_90: clusters of two blocks take tiles until none is
// left. A tile has tileCols columns and as many rows as make the rounds of tiles shortest,
// where each costs what tileExtra rows do on top. Profiles of products of 2048, 4096 and
// 8192 show 256, 256 and 320 rows.
const (
	tileCols    = 128
	tileExtra   = 32
	tileCluster = 2
)

// gemmTiles returns the number of tiles that the clusters of a product of n x n matrices process.
func gemmTiles(n int64, sms int32) int64 {
	clusters := max(1, int64(sms)/tileCluster)
	best, tiles := int64(math.MaxInt64), int64(1)
	for _, rows := range []int64{128, 192, 256, 320} {
		all := (n + rows - 1) / rows * ((n + tileCols - 1) / tileCols)
		all = (all + tileCluster - 1) / tileCluster
		if cost := (all + clusters - 1) / clusters * (rows + tileExtra); cost < best {
			best, tiles = cost, all
		}
	}
	return tiles
}

// attention returns the demands of causal attention with one CTA per SM. CTAs process pieces of 128 rows, the
// largest first, so that little is left at the end; a tile is 128 x 128.
func attention(w workload.Work, sms int32, heads, rows, width int64) workload.Work {
	pieces := (rows + 127) / 128
	w.FLOPs, w.Bytes = 2*heads*rows*rows*width, 8*heads*rows*width
	w.Tiles, w.PerSM, w.Persistent = heads*pieces*(pieces+1)/2, 1, true
	w.Blocks = int32(min(heads*pieces, int64(sms)))
	return w
}
