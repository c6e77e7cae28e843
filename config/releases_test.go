package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/rules"
)

// TestVariablesOfReleases: every variable of the table is one that some release with
// rules reads, and a release passes over those that it has not.
func TestVariablesOfReleases(t *testing.T) {
	for _, v := range config.Vars() {
		if !slices.ContainsFunc(rules.Known(), v.In().Holds) {
			t.Errorf("%s is not of NCCL %s: %+v", v.Name, rules.Default().Version(), v.In())
		}
	}
	older := rules.Default()
	older.Release = rules.Release{Major: 2, Minor: 27, Patch: 7}
	env := []string{"NCCL_NETDEVS_POLICY=ALL", "NCCL_ALGO=Ring", "NCCL_P2P_MAX_PEERS=3"}
	c, warns, err := config.Load(config.Sources{Rules: older, Flags: env})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warns {
		got = append(got, w.String())
	}
	want := "NCCL_NETDEVS_POLICY=ALL (--env): NCCL 2.27.7 reads no such variable; NCCL 2.28 does\n" +
		"NCCL_P2P_MAX_PEERS=3 (--env): NCCL 2.27.7 reads no such variable; NCCL 2.30 does"
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got\n%s\nwant\n%s", g, want)
	}
	if c.Topo.NetDevs.Mode != 0 || c.Text("NCCL_NETDEVS_POLICY").Set || !c.Text("NCCL_ALGO").Set {
		t.Errorf("the policy is in force: %+v", c.Topo.NetDevs)
	}
	rows := config.EnvRows(c, config.Facts{}, false)
	if len(rows) != 3 || rows[0].Name != "NCCL_ALGO" || rows[1].Status != "no effect" ||
		rows[2].Status != "no effect" {
		t.Errorf("rows %+v", rows)
	}
	for _, p := range []*rules.Ruleset{c.Rules, c.Topo.Rules, c.Search.Rules, c.Connect.Rules, c.Tuning.Rules,
		c.Comm().Rules} {
		if p != older {
			t.Error("a room has other rules than were given")
		}
	}
}

// TestVariablesNotModelled: a variable that a later release reads and simccl has no
// row for is neither taken for a misspelt one nor said to be unread by that release.
func TestVariablesNotModelled(t *testing.T) {
	for _, test := range []struct{ release, set, want string }{
		{"2.30.7", "NCCL_P2P_MAX_PEERS=3", "is not supported: simccl does not model it"},
		{"2.28.9", "NCCL_SYM_NOWIN_ENABLE=1", "NCCL 2.28.9 reads no such variable; NCCL 2.29 does"},
		{"2.30.7", "NCCL_GIN_EXCLUSIVE_CONTEXTS=1",
			"NCCL 2.30.7 reads no such variable; NCCL did before 2.30.3"},
		{"2.30.7", "NCCL_SHM_MEMCPY_MODE=1", "NCCL 2.30.7 reads no such variable; NCCL did before 2.30.7"},
		{"2.28.9", "NCCL_WORK_FIFO_DEPTH=64", "NCCL 2.28.9 reads no such variable; NCCL did before 2.22.3"},
	} {
		r, err := rules.For(test.release)
		if err != nil {
			t.Fatal(err)
		}
		c, warns, err := config.Load(config.Sources{NoEnv: true, Rules: r, Flags: []string{test.set}})
		if err != nil {
			t.Fatal(err)
		}
		if len(warns) != 1 || !strings.Contains(warns[0].String(), test.want) {
			t.Errorf("%s with %s: %v, want %q", test.release, test.set, warns, test.want)
		}
		want := "no effect"
		if strings.HasPrefix(test.want, "is not supported") {
			want = "unsupported"
		}
		if rows := config.EnvRows(c, config.Facts{}, false); len(rows) != 1 || rows[0].Status != want {
			t.Errorf("%s with %s: rows %+v, want %s", test.release, test.set, rows, want)
		}
	}
}
