// Command gpusweep measures variants of our own kernels on the GPUs of a machine, to choose their defaults
// (real/internal/device, real/internal/cuda):
//
//	go run ./real/internal/cmd/gpusweep shapes     grids and pieces of the free algorithms
//	go run ./real/internal/cmd/gpusweep buffered   straight to the receiver's output, or through a buffer
//
// It needs four ranks: on four GPUs, or on fewer, which the ranks share.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/units"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpusweep:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: gpusweep shapes | buffered")

const ranks = 4

func run(ctx context.Context, args []string, w io.Writer) error {
	if len(args) != 1 || args[0] != "shapes" && args[0] != "buffered" {
		return errUsage
	}
	d, err := cuda.Open()
	if err != nil {
		return err
	}
	var gpus []int
	for i := range ranks {
		gpus = append(gpus, i%d.Count())
	}
	if args[0] == "shapes" {
		return shapes(ctx, w, d, gpus)
	}
	for _, through := range []bool{false, true} {
		if err := buffered(ctx, w, device.Config{Driver: d, Plans: true, GPUs: gpus, Ranks: ranks,
			Buffer: 1 << 30, Buffered: through}); err != nil {
			return err
		}
	}
	return nil
}

// shapes measures each free algorithm at the sizes for which it may be chosen.
func shapes(ctx context.Context, w io.Writer, d *cuda.Driver, gpus []int) (err error) {
	s, err := device.Open(ctx, device.Config{Driver: d, Free: true, GPUs: gpus, Ranks: ranks,
		Buffer: 256 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, f := range []coll.Func{coll.AllReduce, coll.ReduceScatter} {
		for size := units.Bytes(64 << 10); size <= 256<<20; size *= 4 {
			for _, shape := range cuda.FreeShapes(f) {
				if shape == cuda.Copies || (shape == cuda.OneShot || shape == cuda.TwoWords) &&
					size > 512<<10 || shape == cuda.TwoShot && size > 16<<20 {
					continue
				}
				if err := grids(ctx, w, s, f, size, shape); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// grids measures a shape with different numbers of blocks and, if it has pieces, different sizes of them.
func grids(ctx context.Context, w io.Writer, s *device.Session, f coll.Func, size units.Bytes,
	shape cuda.Shape) error {
	pieces := []units.Bytes{0}
	if shape == cuda.Push {
		pieces = []units.Bytes{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10}
	}
	for _, piece := range pieces {
		fmt.Fprintf(w, "%v %9d %v piece %d", f, size, shape, piece)
		for _, blocks := range []int{16, 32, 64, 96, 128} {
			op := &device.Case{Func: f, Type: coll.Float32, Sizes: coll.TestSizes(f, size, coll.Float32,
				ranks), Blocks: blocks, Piece: piece}
			m, err := s.Measure(ctx, op, device.Free(shape), device.Options{Iters: 20, Warmup: 1, Replays: 3,
				Check: 1, Average: device.Slowest, Seed: 1})
			if err == nil && m.Wrong > 0 {
				err = fmt.Errorf("%d elements are wrong", m.Wrong)
			}
			if err != nil {
				return fmt.Errorf("%v %v %d bytes, %d blocks, piece %d: %w", f, shape, size, blocks, piece,
					err)
			}
			fmt.Fprintf(w, " %d:%.2f", blocks, m.Time.Micros())
		}
		fmt.Fprintln(w)
	}
	return nil
}

// buffered measures planned operations with one of the two ways of delivering the output.
func buffered(ctx context.Context, w io.Writer, cfg device.Config) (err error) {
	s, err := device.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c := exectest.Comm(ranks, 1, 32)
	for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.AllToAll} {
		for size := units.Bytes(16 << 20); size <= 1<<30; size *= 4 {
			count := coll.TestSizes(f, size, coll.Float32, ranks).Count
			p, err := build.Plan(c, plan.Request{Func: f, Type: coll.Float32, Count: count, Algo: coll.Ring,
				Proto: coll.Simple, Channels: 24, Warps: 16})
			if err != nil {
				return err
			}
			m, err := s.Measure(ctx, device.OpOf(p), device.Planned, device.Options{Iters: 10, Warmup: 1,
				Replays: 2, Check: 1, Average: device.Slowest})
			if err == nil && m.Wrong > 0 {
				err = fmt.Errorf("%d elements are wrong", m.Wrong)
			}
			if err != nil {
				return fmt.Errorf("%v of %d bytes: %w", f, size, err)
			}
			fmt.Fprintf(w, "%v %9d buffered %t: %.2f us\n", f, size, cfg.Buffered, m.Time.Micros())
		}
	}
	return nil
}
