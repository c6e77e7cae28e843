package config_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
)

// TestEveryVariableOfRCCL: each of RCCL's own variables is honoured, says with its place in RCCL's source
// why it changes nothing, or is refused by type where its value would change a decision; none only warns.
func TestEveryVariableOfRCCL(t *testing.T) {
	source, err := os.ReadFile(golden.Root(t, "config", "rccl.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(RCCL_[A-Z0-9_]+) \|`).FindAllSubmatch(source, -1) {
		names[string(m[1])] = true
	}
	if len(names) < 65 {
		t.Fatalf("%d variables", len(names))
	}
	of := rules.DefaultRCCL()
	for name := range names {
		v := config.Lookup(name)
		changed := map[bool]string{true: "0", false: "7"}[v.Default == "1"]
		switch name {
		case "RCCL_OVERRIDE_ALGO":
			changed = "Ring"
		case "RCCL_OVERRIDE_PROTO":
			changed = "LL"
		}
		_, warned, err := config.Load(config.Sources{Rules: of, NoEnv: true,
			Flags: []string{name + "=" + changed}})
		var refused *config.UnmodelledError
		switch {
		case errors.As(err, &refused):
			if strings.HasPrefix(refused.Why, "no ") {
				t.Errorf("%s is refused though %s", name, refused.Why)
			}
			if _, _, err := config.Load(config.Sources{Rules: of, NoEnv: true,
				Flags: []string{name + "=" + v.Default}}); err != nil && v.Default != "" {
				t.Errorf("%s=%s, the default: %v", name, v.Default, err)
			}
		case err != nil:
			t.Errorf("%s=%s: %v, not by type", name, changed, err)
		case v.Unsupported != "":
			t.Errorf("%s=%s is not supported and only warns: %v", name, changed, warned)
		case !v.Honoured() && v.NoEffect == "":
			t.Errorf("%s has no effect, and no reason", name)
		}
		if v.Source == "" {
			t.Errorf("%s: no place in RCCL's source", name)
		}
	}
}

// TestFeaturesAreRefusedByType: WarpSpeed, GDA and MSCCL are refused each by its own type, and the value that
// the message names in place is accepted without a word.
func TestFeaturesAreRefusedByType(t *testing.T) {
	load := func(set string) ([]config.Warning, error) {
		_, warned, err := config.Load(config.Sources{Rules: rules.DefaultRCCL(), NoEnv: true,
			Flags: []string{set}})
		return warned, err
	}
	for set, want := range map[string]config.Feature{"RCCL_WARP_SPEED_FORCE_ENABLE=1": config.WarpSpeed,
		"RCCL_ROCSHMEM_ENABLE=1": config.GDA, "RCCL_MSCCL_ENABLE=1": config.MSCCL,
		"RCCL_MSCCLPP_ENABLE=1": config.MSCCL, "RCCL_TREES=(0(1))": ""} {
		_, err := load(set)
		var refused *config.UnmodelledError
		if !errors.As(err, &refused) || refused.Feature != want {
			t.Errorf("%s: %v, want %q refused", set, err, want)
			continue
		}
		for _, instead := range regexp.MustCompile(`RCCL_\w+=\w+`).FindAllString(refused.Write, -1) {
			if warned, err := load(instead); err != nil || len(warned) > 0 {
				t.Errorf("%s in place of %s: %v, %v", instead, set, warned, err)
			}
		}
	}
}
