package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/rules"
)

// Select returns the rules for what text names; "" is the default's. note is for
// people: it says what the text came to where that is not plain, and is empty
// otherwise. A release between those with rules is answered by the one that decides the
// same (equal), else by the nearest older one, a newer one than all by the newest. Of RCCL
// ("rccl-2.30.4", "rocm==7.14") only the release itself answers. Errors are a *rules.ROCmError, a
// *rules.FormatError, a *rules.UnknownError for a release older than all, or a *TorchError.
func Select(text string) (r *rules.Ruleset, note string, err error) {
	if text == "" {
		return rules.Default(), "", nil
	}
	if v, ok := strings.CutPrefix(text, "rocm=="); ok {
		r, err := rules.ForROCm(v)
		if err != nil {
			return nil, "", err
		}
		return r, "ROCm " + v + " brings " + r.Name(), nil
	}
	if strings.HasPrefix(text, "rccl-") {
		r, err := rules.For(text)
		return r, "", err
	}
	if v, ok := strings.CutPrefix(text, "torch=="); ok {
		named, err := ofTorch(v)
		if err != nil {
			return nil, "", err
		}
		r, near, err := nearest(named)
		if err != nil {
			return nil, "", fmt.Errorf("PyTorch %s brings NCCL %s: %w", v, named, err)
		}
		return r, strings.TrimSuffix("PyTorch "+v+" brings NCCL "+named.String()+"; "+near, "; "), nil
	}
	named, err := rules.ParseRelease(text)
	if err != nil {
		return nil, "", err
	}
	return nearest(named)
}

// nearest returns the rules of a release, of the one that decides the same, or of the nearest
// older one that has some.
func nearest(named rules.Release) (*rules.Ruleset, string, error) {
	known := rules.Known()
	i, found := slices.BinarySearchFunc(known, named, rules.Release.Compare)
	switch {
	case found:
		r, err := rules.For(named.String())
		return r, "", err
	case i == 0:
		return nil, "", &rules.UnknownError{Release: named}
	}
	if of, ok := equal[named]; ok {
		r, err := rules.For(of.String())
		return r, fmt.Sprintf("NCCL %s decides what %s does, whose rules answer", named, of), err
	}
	r, err := rules.For(known[i-1].String())
	return r, fmt.Sprintf("NCCL %s has no rules of its own here; those of %s answer", named, known[i-1]), err
}

// Recorded is the release whose rules are taken for a recording of the version: its own,
// the oldest that is known for an older one, and the default's ("") for a text that is no
// version. note says so.
func Recorded(text string) (version, note string) {
	have, err := rules.ParseRelease(text)
	if err != nil {
		return "", fmt.Sprintf("%q of the recording is no version of NCCL; the rules of %s are taken", text,
			rules.Default().Version())
	}
	oldest := rules.Known()[0]
	if have.Compare(oldest) >= 0 {
		return text, ""
	}
	return oldest.String(),
		fmt.Sprintf("NCCL %s of the recording is older than all rules here; those of %s are taken", have,
			oldest)
}

// Named reports whether a word has the form of what Select reads.
func Named(word string) bool {
	if strings.HasPrefix(word, "torch==") || strings.HasPrefix(word, "rocm==") ||
		strings.HasPrefix(word, "rccl-") {
		return true
	}
	_, err := rules.ParseRelease(word)
	return err == nil
}

// Names lists what Select knows, for help: "2.21.5, …, 2.30.7".
func Names() string {
	var out []string
	for _, r := range rules.Known() {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

// OfRCCL is what Select reads for a version of RCCL as a user names it: "2.30.4" or "rocm==7.14".
func OfRCCL(version string) string {
	if strings.HasPrefix(version, "rocm==") || strings.HasPrefix(version, "rccl-") {
		return version
	}
	return "rccl-" + version
}
