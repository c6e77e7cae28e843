package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/rules"
)

// TestRCCLIsNamedByReleaseAndROCm: a release of RCCL has rules of its own under its number and under the ROCm
// that brings it; others are named and refused.
func TestRCCLIsNamedByReleaseAndROCm(t *testing.T) {
	for text, want := range map[string]string{"rccl-2.30.4": "RCCL 2.30.4", "rccl-2.28.3": "RCCL 2.28.3",
		"2.28.3": "NCCL 2.28.3"} {
		r, err := rules.For(text)
		if err != nil || r.Name() != want || r.Version() != text {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for rocm, want := range map[string]string{"7.14": "2.30.4", "7.12": "2.28.3", "7.13.1": "2.28.3"} {
		r, err := rules.ForROCm(rocm)
		if err != nil || r.Release.String() != want || !strings.HasPrefix(rocm, r.Edition.ROCm) {
			t.Errorf("ROCm %s: %v, %v", rocm, r, err)
		}
	}
	var unknown *rules.UnknownError
	if _, err := rules.ForROCm("6.3.1"); !errors.As(err, &unknown) || unknown.Release.String() != "2.21.5" {
		t.Errorf("ROCm 6.3.1: %v", err)
	}
	if _, err := rules.For("rccl-2.27.7"); !errors.As(err, &unknown) || unknown.Library != rules.RCCL {
		t.Errorf("rccl-2.27.7: %v", err)
	}
	var rocm *rules.ROCmError
	if _, err := rules.ForROCm("9"); !errors.As(err, &rocm) {
		t.Errorf("ROCm 9: %v", err)
	}
	var format *rules.FormatError
	if _, err := rules.For("rccl-new"); !errors.As(err, &format) {
		t.Errorf("rccl-new: %v", err)
	}
}

// TestLibrariesDoNotMix: stages of one communicator are of one library, though the number is the same.
func TestLibrariesDoNotMix(t *testing.T) {
	nccl, err := rules.For("2.28.3")
	if err != nil {
		t.Fatal(err)
	}
	rccl, err := rules.For("rccl-2.28.3")
	if err != nil {
		t.Fatal(err)
	}
	var mixed *rules.MixedError
	if err := rccl.Check("search", nccl); !errors.As(err, &mixed) || mixed.Have != "2.28.3" ||
		mixed.Want != "rccl-2.28.3" {
		t.Errorf("%v", err)
	}
}

// TestStagesThatAreNotBuilt: rules that stop at a stage refuse those behind it by type, and no others.
