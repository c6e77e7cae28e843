package process

import (
	"bufio"
	"fmt"
	"os"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/workload/inputs"
)

// headSize is the number of bytes by which the kind of a file is recognised.
const headSize = 64 << 10

// Release returns the NCCL version that a request names: directly, or by a library file, which is read but
// not executed; "" if neither is given.
func (p *Process) Release(version, library string) (string, error) {
	switch {
	case library == "":
		return version, nil
	case version != "":
		return "", fail.Usage("--nccl-version and --libnccl name a version each; leave one out")
	}
	f, err := os.Open(p.Path(library))
	if err != nil {
		return "", fmt.Errorf("--libnccl: %w", err)
	}
	defer f.Close()
	b := bufio.NewReaderSize(f, headSize)
	head, _ := b.Peek(headSize) // its error comes again where the library is read
	if err := inputs.Want(head, library, inputs.ELF); err != nil {
		return "", fail.Input(fmt.Errorf("--libnccl: %w", err))
	}
	v, err := release.OfLibrary(b)
	if err != nil {
		return "", fmt.Errorf("--libnccl %s: %w", library, err)
	}
	return v.String(), nil
}

// Recorded returns the release whose rules are used for a recording of a version, and prints a note if it
// differs.
func (p *Process) Recorded(version string) string {
	taken, note := release.Recorded(version)
	if note != "" {
		fmt.Fprintf(p.Notes(), "simccl: %s\n", note)
	}
	return taken
}
