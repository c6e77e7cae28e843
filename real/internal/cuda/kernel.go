package cuda

import (
	"embed"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
)

//go:embed kernels/*.ptx.zst
var kernelFiles embed.FS

// Kernels loads the kernels of one device on first use. Loading compiles PTX, which takes up to seconds, and
// is not allowed while a stream is captured.
type Kernels struct {
	dev     *Device
	modules map[string]Module
	loaded  map[string]Kernel
}

// NewKernels returns the kernels of a device; none is loaded yet.
func NewKernels(dev *Device) *Kernels {
	return &Kernels{dev, map[string]Module{}, map[string]Kernel{}}
}

// get returns a kernel of a file, loading it if necessary.
func (k *Kernels) get(file, name string) (Kernel, error) {
	if f, ok := k.loaded[name]; ok {
		return f, nil
	}
	m, ok := k.modules[file]
	if !ok {
		image, err := ptx(file)
		if err != nil {
			return 0, err
		}
		if m, err = k.dev.Load(image); err != nil {
			return 0, err
		}
		k.modules[file] = m
	}
	f, err := k.dev.Kernel(m, name)
	if err == nil {
		k.loaded[name] = f
	}
	return f, err
}

// Close unloads all modules.
func (k *Kernels) Close() error {
	for _, file := range slices.Sorted(maps.Keys(k.modules)) {
		if err := k.dev.Unload(k.modules[file]); err != nil {
			return err
		}
		delete(k.modules, file)
	}
	return nil
}

func ptx(file string) ([]byte, error) {
	raw, err := kernelFiles.ReadFile("kernels/" + file + ".ptx.zst")
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(raw, nil)
}
