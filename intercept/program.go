package intercept

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// RefusedError is a program that cannot be intercepted.
type RefusedError struct {
	Program, Problem, Hint string
}

// Error names the program, what it is, and what to do.
func (e *RefusedError) Error() string { return e.Program + ": " + e.Problem + "; " + e.Hint }

// binary is what of a program decides how it finds its libraries.
type binary struct {
	needed  []string
	nccl    bool // it defines NCCL's functions
	runtime bool // it defines those of CUDA's runtime
}

// inspect reads a program file; nil for one that is no ELF file, as a script.
func inspect(path string) (*binary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil || string(head) != elf.ELFMAG {
		return nil, nil
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, &RefusedError{path, "it is no complete ELF file: " + err.Error(),
			"give a program of this machine"}
	}
	b := &binary{}
	b.needed, _ = e.ImportedLibraries()
	for _, read := range []func() ([]elf.Symbol, error){e.Symbols, e.DynamicSymbols} {
		symbols, err := read()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			continue
		}
		for i := range symbols {
			if symbols[i].Section == elf.SHN_UNDEF {
				continue
			}
			b.nccl = b.nccl || symbols[i].Name == "ncclAllReduce"
			b.runtime = b.runtime || symbols[i].Name == "cudaLaunchKernel"
		}
	}
	if _, err := e.Symbols(); errors.Is(err, elf.ErrNoSymbols) {
		b.stripped(e)
	}
	return b, nil
}

// stripped looks for the libraries in the texts of a program without symbols.
func (b *binary) stripped(e *elf.File) {
	s := e.Section(".rodata")
	if s == nil || s.Size > 1<<30 {
		return
	}
	text, err := s.Data()
	if err != nil {
		return
	}
	needs := func(name string) bool {
		return slices.ContainsFunc(b.needed, func(n string) bool { return strings.HasPrefix(n, name) })
	}
	b.nccl = b.nccl || !needs("libnccl.so") && bytes.Contains(text, []byte("NCCL_ALGO")) &&
		bytes.Contains(text, []byte("NCCL_PROTO")) && bytes.Contains(text, []byte("NCCL_DEBUG"))
	b.runtime = b.runtime || !needs("libcudart.so") && bytes.Contains(text, []byte("libcuda.so.1")) &&
		bytes.Contains(text, []byte("cudaErrorInvalidValue"))
}

// check refuses programs whose libraries are part of them.
func (b *binary) check(path string, substitute bool) error {
	switch {
	case b == nil:
	case b.nccl:
		return &RefusedError{
			path, "NCCL is linked into it (libnccl_static), so its calls cannot be intercepted",
			"link it with libnccl.so.2 (-lnccl)"}
	case b.runtime && substitute:
		return &RefusedError{path, "CUDA's runtime is linked into it (libcudart_static), which needs a " +
			"driver with GPUs and gives up without",
			"link it with nvcc -cudart shared, or run it on a machine with a GPU (--devices real)"}
	}
	return nil
}

// cudart is the library of CUDA's runtime that a program is linked with, "" for none.
func (b *binary) cudart() string {
	if b != nil {
		for _, n := range b.needed {
			if strings.HasPrefix(n, "libcudart.so.") {
				return n
			}
		}
	}
	return ""
}
