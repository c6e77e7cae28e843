package release

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/rules"
)

// wheels are the releases of NCCL that PyTorch's wheels depend on, newest PyTorch
// first, with the CUDA of the wheel where it matters. Sources: docs/VERSIONS.md.
var wheels = []struct {
	torch, cuda string
	nccl        rules.Release
}{
	{"2.13", "cu126", rules.Release{Major: 2, Minor: 29, Patch: 3}},
	{"2.13", "", rules.Release{Major: 2, Minor: 29, Patch: 7}},
	{"2.12", "cu126", rules.Release{Major: 2, Minor: 29, Patch: 3}},
	{"2.12", "", rules.Release{Major: 2, Minor: 29, Patch: 7}},
	{"2.11", "", rules.Release{Major: 2, Minor: 28, Patch: 9}},
	{"2.10", "cu126", rules.Release{Major: 2, Minor: 27, Patch: 5}},
	{"2.10", "cu128", rules.Release{Major: 2, Minor: 27, Patch: 5}},
	{"2.10", "cu130", rules.Release{Major: 2, Minor: 28, Patch: 9}},
	{"2.9", "", rules.Release{Major: 2, Minor: 27, Patch: 5}},
	{"2.8", "", rules.Release{Major: 2, Minor: 27, Patch: 3}},
	{"2.7", "cu118", rules.Release{Major: 2, Minor: 21, Patch: 5}},
	{"2.7", "", rules.Release{Major: 2, Minor: 26, Patch: 2}},
	{"2.6", "", rules.Release{Major: 2, Minor: 21, Patch: 5}},
	{"2.5", "", rules.Release{Major: 2, Minor: 21, Patch: 5}},
	{"2.4", "", rules.Release{Major: 2, Minor: 20, Patch: 5}},
	{"2.3", "", rules.Release{Major: 2, Minor: 20, Patch: 5}},
	{"2.2", "", rules.Release{Major: 2, Minor: 19, Patch: 3}},
	{"2.1", "cu118", rules.Release{Major: 2, Minor: 18, Patch: 5}},
	{"2.1", "", rules.Release{Major: 2, Minor: 18, Patch: 1}},
	{"2.0", "", rules.Release{Major: 2, Minor: 14, Patch: 3}},
}

// ofTorch finds the release in the wheel of a PyTorch version, "2.8.0+cu128" or a
// part of that.
func ofTorch(text string) (rules.Release, error) {
	version, cuda, _ := strings.Cut(text, "+")
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return rules.Release{}, &TorchError{Text: text}
	}
	minor := parts[0] + "." + parts[1]
	var cudas []string
	for _, w := range wheels {
		if w.torch != minor {
			continue
		}
		if w.cuda == "" || w.cuda == cuda {
			return w.nccl, nil
		}
		cudas = append(cudas, w.cuda)
	}
	return rules.Release{}, &TorchError{Text: text, CUDA: cudas}
}

// TorchError says that no release is known for a version of PyTorch, or that it
// depends on the CUDA of the wheel.
type TorchError struct {
	Text string
	CUDA []string // of the wheels, where it depends on that
}

func (e *TorchError) Error() string {
	if len(e.CUDA) > 0 {
		return fmt.Sprintf("PyTorch %s: which NCCL it brings depends on CUDA; write torch==%s+%s", e.Text,
			strings.SplitN(e.Text, "+", 2)[0], strings.Join(e.CUDA, " or +"))
	}
	oldest := 0 // of those whose release has rules
	for i := range wheels {
		if wheels[i].nccl.Compare(rules.Known()[0]) >= 0 {
			oldest = i
		}
	}
	return fmt.Sprintf("PyTorch %s: its NCCL is not known here; write torch==%s to torch==%s, or the "+
		"version of NCCL", e.Text, wheels[oldest].torch, wheels[0].torch)
}
