package release_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/rules/release"
)

func TestSelect(t *testing.T) {
	for text, want := range map[string]string{
		"": "2.28.9 ", "2.28.9": "2.28.9 ", "v2.29.7-1": "2.29.7 ",
		"2.27.6":            "2.27.7 NCCL 2.27.6 decides what 2.27.7 does, whose rules answer",
		"2.27.4":            "2.27.3 NCCL 2.27.4 has no rules of its own here; those of 2.27.3 answer",
		"2.31.2":            "2.30.7 NCCL 2.31.2 has no rules of its own here; those of 2.30.7 answer",
		"torch==2.7.1":      "2.26.2 PyTorch 2.7.1 brings NCCL 2.26.2",
		"torch==2.7+cu118":  "2.21.5 PyTorch 2.7+cu118 brings NCCL 2.21.5",
		"torch==2.9.1":      "2.27.5 PyTorch 2.9.1 brings NCCL 2.27.5",
		"torch==2.10+cu130": "2.28.9 PyTorch 2.10+cu130 brings NCCL 2.28.9",
		"torch==2.12+cu126": "2.29.2 PyTorch 2.12+cu126 brings NCCL 2.29.3; NCCL 2.29.3 decides what " +
			"2.29.2 does, whose rules answer",
	} {
		r, note, err := release.Select(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := r.Version() + " " + note; got != want {
			t.Errorf("%q: %s\nwant %s", text, got, want)
		}
	}
	var unknown *rules.UnknownError
	if _, _, err := release.Select("2.10.3"); !errors.As(err, &unknown) {
		t.Errorf("2.10.3: %v", err)
	}
	for text, want := range map[string]string{"torch==2.4.1": "2.20.5", "torch==2.3": "2.20.5",
		"torch==2.2": "2.19.3", "torch==2.1.0": "2.18.1", "torch==2.1+cu118": "2.18.5",
		"torch==2.0.1": "2.14.3"} {
		if _, _, err := release.Select(text); !errors.As(err, &unknown) || unknown.Release.String() != want ||
			!strings.HasPrefix(err.Error(), "PyTorch "+text[len("torch=="):]+" brings NCCL "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	var format *rules.FormatError
	if _, _, err := release.Select("new"); !errors.As(err, &format) {
		t.Errorf("new: %v", err)
	}
	for text, want := range map[string]string{"torch==1.13": "its NCCL is not known",
		"torch==2": "its NCCL is not known", "torch==2.10": "write torch==2.10+cu126 or +cu128 or +cu130"} {
		var torch *release.TorchError
		if _, _, err := release.Select(text); !errors.As(err, &torch) || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestEveryTag: each public tag from 2.21 to 2.30 has rules of its own or those of a tag
// that decides the same.
func TestEveryTag(t *testing.T) {
	equal := map[string]string{"2.26.3": "2.26.6", "2.26.5": "2.26.6", "2.27.6": "2.27.7", "2.29.3": "2.29.2",
		"2.30.4": "2.30.3"}
	for _, tag := range strings.Fields("2.21.5 2.22.3 2.23.4 2.24.3 2.25.1 2.26.2 2.26.3 2.26.5 2.26.6 " +
		"2.27.3 2.27.5 2.27.6 2.27.7 2.28.3 2.28.7 2.28.9 2.29.2 2.29.3 2.29.7 2.30.3 2.30.4 2.30.7") {
		want, note := tag, ""
		if of := equal[tag]; of != "" {
			want, note = of, "NCCL "+tag+" decides what "+of+" does, whose rules answer"
		}
		if r, got, err := release.Select(tag); err != nil || r.Version() != want || got != note {
			t.Errorf("%s: %v, %q, want the rules of %s", tag, err, got, want)
		}
	}
}

func TestOfLibrary(t *testing.T) {
	for at := range 3 {
		pad := strings.Repeat("x", 1<<16-8+at*7) // the text goes over the end of a window
		text := pad + "NCCL version %d\x00" + pad + "NCCL version 2.27.5+cuda12.9\x00more"
		got, err := release.OfLibrary(iotest.OneByteReader(strings.NewReader(text)))
		if err != nil || got.String() != "2.27.5" {
			t.Errorf("%v, %v", got, err)
		}
	}
	if _, err := release.OfLibrary(strings.NewReader("ELF")); !errors.Is(err, release.ErrNoVersion) {
		t.Errorf("no library: %v", err)
	}
	if _, err := release.OfLibrary(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("unreadable: %v", err)
	}
}

// TestRecorded: a recording has the rules of its release, or of the oldest.
func TestRecorded(t *testing.T) {
	for _, c := range [][3]string{
		{"2.28.9", "2.28.9", ""}, {"2.27.6", "2.27.6", ""},
		{"2.17.1", "2.21.5",
			"NCCL 2.17.1 of the recording is older than all rules here; those of 2.21.5 are taken"},
		{"rccl", "", `"rccl" of the recording is no version of NCCL; the rules of 2.28.9 are taken`},
	} {
		if v, note := release.Recorded(c[0]); v != c[1] || note != c[2] {
			t.Errorf("%s: %q, %q", c[0], v, note)
		}
	}
}
