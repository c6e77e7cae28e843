package cuda

import (
	"fmt"
	"structs"
	"sync/atomic"
	"time"
	"unsafe"
)

// clockArgs mirrors Args of kernels/clock.cu.
type clockArgs struct {
	_                   structs.HostLayout
	board, stop, rounds uint64
}

// Clock relates a GPU's clock to the host's: host = GPU + Offset, with an error of at most Error, in
// nanoseconds. The host's clock is the time since epoch.
type Clock struct{ Offset, Error int64 }

// ReadClock reads the GPU's clock repeatedly and keeps the fastest answer. It takes less than a millisecond
// on a GPU; on a fake GPU of a busy machine it may take longer.
func ReadClock(k *Kernels, s Stream, stop *Stop, epoch time.Time) (Clock, error) {
	const rounds, limit = 64, 2 * time.Second
	best := Clock{Error: 1 << 62}
	f, err := k.get("clock", "tell_clock")
	if err != nil {
		return best, err
	}
	raw, err := k.dev.HostAlloc(64)
	if err != nil {
		return best, err
	}
	clear(raw)
	board := (*[3]uint64)(unsafe.Pointer(&raw[0]))
	a := &clockArgs{board: uint64(uintptr(unsafe.Pointer(board))), stop: stop.at(), rounds: rounds}
	if err := k.dev.Launch(f, 1, warpSize, 0, s, []unsafe.Pointer{unsafe.Pointer(a)}); err != nil {
		return best, err
	}
	for n := uint64(1); n <= rounds; n++ {
		began := time.Now()
		sent := began.Sub(epoch).Nanoseconds()
		atomic.StoreUint64(&board[0], n)
		for spin := 0; atomic.LoadUint64(&board[1]) != n; spin++ {
			if spin < 4096 {
				continue
			}
			if time.Since(began) > limit {
				return best, fmt.Errorf("clock of GPU %d: no answer within %v", k.dev.Index, limit)
			}
			time.Sleep(20 * time.Microsecond)
		}
		received := time.Since(epoch).Nanoseconds()
		if half := (received - sent + 1) / 2; half < best.Error {
			best = Clock{Offset: sent + half - int64(board[2]), Error: half}
		}
	}
	if err := k.dev.Sync(s); err != nil {
		return best, err
	}
	return best, k.dev.HostFree(raw)
}
