package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
)

// files answers ReadFile from a map.
func files(m map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if s, ok := m[name]; ok {
			return []byte(s), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

func load(t *testing.T, s config.Sources) (*config.Config, []config.Warning) {
	t.Helper()
	c, w, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

// TestPrecedence: flag, then environment, then the user's file or
// NCCL_CONF_FILE, then /etc/nccl.conf; the first line of a file holds.
func TestPrecedence(t *testing.T) {
	conf := map[string]string{
		"/home/u/.nccl.conf": "# mine\nNCCL_CROSS_NIC=1\nNCCL_CROSS_NIC=0\nNCCL_NTHREADS=128\n" +
			"NCCL_ALGO=Tree\n",
		"/etc/nccl.conf": "NCCL_NTHREADS=256\nNCCL_PAT_ENABLE=0\n",
		"/other":         "NCCL_NTHREADS=96\n",
	}
	s := config.Sources{
		Flags:   []string{"NCCL_ALGO=Ring", "NCCL_ALGO=NVLS"},
		Environ: []string{"HOME=/home/u", "NCCL_ALGO=Tree", "NCCL_CROSS_NIC=2", "NCCL_CROSS_NIC=1"},
		Home:    "/home/u", ReadFile: files(conf),
	}
	c, _ := load(t, s)
	for _, want := range []string{
		"NCCL_ALGO NVLS --env", "NCCL_CROSS_NIC 2 environment", "NCCL_NTHREADS 128 /home/u/.nccl.conf:4",
		"NCCL_PAT_ENABLE 0 /etc/nccl.conf:2", "NCCL_PROTO  default",
	} {
		name, _, _ := strings.Cut(want, " ")
		v := c.Value(name)
		if got := name + " " + v.Text + " " + v.Origin.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s.Flags = append(s.Flags, "NCCL_CONF_FILE=/other")
	if c, _ = load(t, s); c.Number("NCCL_NTHREADS").Value != 96 || c.Number("NCCL_PAT_ENABLE").Set != true {
		t.Error("NCCL_CONF_FILE must take the place of ~/.nccl.conf and leave /etc/nccl.conf")
	}
	s.NoEnv = true
	c, _ = load(t, s)
	if c.Value("NCCL_CROSS_NIC").Origin.Kind != config.Default || c.Number("NCCL_PAT_ENABLE").Set ||
		c.Number("NCCL_NTHREADS").Value != 96 {
		t.Error("--no-env must leave the environment and the default files, and keep flags and the file " +
			"they name")
	}
}

// TestParseNumber follows strtoll with base 0 as misc/param.cc:88 calls it.
func TestParseNumber(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		rest string
		ok   bool
	}{
		{"12", 12, "", true}, {"  -7", -7, "", true}, {"0x10", 16, "", true}, {"010", 8, "", true},
		{"08", 0, "8", true},
		{"0x", 0, "x", true}, {"0xg", 0, "xg", true}, {"true", 0, "true", true}, {"4M", 4, "M", true},
		{"", 0, "", true},
		{"+0X1f ", 31, " ", true}, {"9223372036854775807", math.MaxInt64, "", true},
		{"9223372036854775808", 0, "", false},
		{"-9223372036854775808", math.MinInt64, "", true}, {"-9223372036854775809", 0, "", false},
		{"99999999999999999999x", 0, "x", false},
		{"-", 0, "-", true}, {"0", 0, "", true}, {"-0", 0, "", true},
	} {
		v, rest, ok := config.ParseNumber(c.in)
		if v != c.want || rest != c.rest || ok != c.ok {
			t.Errorf("%q: got %d, %q, %v; want %d, %q, %v", c.in, v, rest, ok, c.want, c.rest, c.ok)
		}
	}
}

// TestWarnings is the warnings of a user, one case a line.
func TestWarnings(t *testing.T) {
	s := config.Sources{
		Environ: []string{
			"NCCL_CROSSNIC=1", "NCCL_ALG0=Ring", "NCCL_P2P_LEVEL=pix", "NCCL_NTHREADS=0256",
			"NCCL_PXN_DISABLE=true",
			"NCCL_P2P_LL_THRESHOLD=8K", "NCCL_MIN_NCHANNELS=99999999999999999999", "NCCL_NET_MERGE_LEVEL=NVL",
			"NCCL_NETDEVS_POLICY=MAX:0",
			"NCCL_P2P_MAX_PEERS=4", "NCCL_PROFILE_X=1", "NCCL_IB_TC=106", "NCCL_DEBUG=INFO", "PATH=/bin",
			"NCCL_VERSION=2.28.3-1",
		},
		Home: "/home/u",
		ReadFile: files(map[string]string{
			"/home/u/.nccl.conf": "NCCL_TOPO_FILE = /tmp/x\n  # note NCCL_A=1\nNCCL_IB_SL=3 \nexport\n\n" +
				"=3\n" +
				"NCCL_CONF_FILE=/nowhere\r\n"}),
	}
	_, warns := load(t, s)
	var b strings.Builder
	for _, w := range warns {
		fmt.Fprintln(&b, w)
	}
	golden.Text(t, "testdata/warnings.txt", b.String())
	if _, warns := load(t, config.Sources{Flags: []string{"NCCL_VERSION=2.30"}}); len(warns) != 1 {
		t.Errorf("--env NCCL_VERSION=2.30: warnings %v, want that it chooses nothing", warns)
	}
}

// TestRefusals: what NCCL fails to start with is an Error with its place.
func TestRefusals(t *testing.T) {
	_, _, err := config.Load(config.Sources{Environ: []string{"NCCL_ALGO=rung"}})
	var e *config.Error
	var m *coll.MaskError
	if !errors.As(err, &e) || !errors.As(err, &m) || e.Var != "NCCL_ALGO" || m.Token != "rung" {
		t.Errorf("got %v", err)
	}
	if _, _, err = config.Load(config.Sources{Flags: []string{"NCCL_ALGO"}}); err == nil {
		t.Error("--env without = must be refused")
	}
}

// TestTable: every name once, sane rows, the honoured ones bound.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range config.Vars() {
		v := &row
		if seen[v.Name] {
			t.Errorf("%s twice", v.Name)
		}
		seen[v.Name] = true
		if v.NoEffect != "" && v.Unsupported != "" {
			t.Errorf("%s: both without effect and unsupported", v.Name)
		}
		if v.Meaning == "" || v.Source == "" || v.Room == "" {
			t.Errorf("%s: incomplete", v.Name)
		}
	}
	if len(seen) < 180 {
		t.Errorf("%d variables; NCCL 2.28.9 reads more", len(seen))
	}
}

// TestEnvDocFresh keeps docs/ENV.md equal to the table: `make generate`, or
// this test with -update, writes it.
func TestEnvDocFresh(t *testing.T) {
	golden.Text(t, golden.Root(t, "docs", "ENV.md"), config.Markdown())
}

// TestEnvTable shows what `simccl env` prints for a few settings.
func TestEnvTable(t *testing.T) {
	c, _ := load(t, config.Sources{
		Flags: []string{"NCCL_ALGO=Tree"},
		Environ: []string{"NCCL_CROSS_NIC=0", "NCCL_NVLS_ENABLE=0", "NCCL_DEBUG=INFO", "NCCL_IB_TC=106",
			"NCCL_FOO=", "NCCL_NTHREADS=-2", "NCCL_PROTO="},
	})
	one := config.EnvText(config.EnvRows(c, config.Facts{Known: true, Nodes: 1, Ranks: 8, MinSM: 80, Hosts: 1,
		Nets: 8}, false))
	two := config.EnvText(config.EnvRows(c, config.Facts{Known: true, Nodes: 2, Ranks: 16, MinSM: 90,
		NVSwitch: true, Hosts: 1, Nets: 8}, false))
	golden.Text(t, "testdata/env.txt", "one node, sm_80\n"+one+"\ntwo nodes, sm_90, NVSwitch\n"+two)
	read := 0
	for _, v := range config.Vars() {
		if v.In().Holds(c.Rules.Release) {
			read++
		}
	}
	if n := len(config.EnvRows(c, config.Facts{}, true)); n != read+1 {
		t.Errorf("%d rows, want the table and the unknown one", n)
	}
}

// FuzzConf: any file gives entries that name lines of it, and Load never
// panics with them.
func FuzzConf(f *testing.F) {
	f.Add("NCCL_ALGO=Ring\n# c\n =\x00x\nNCCL_NTHREADS = 0x\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		for _, e := range config.ParseConf(text) {
			if e.Line < 1 || e.Line > lines {
				t.Fatalf("line %d of %d", e.Line, lines)
			}
		}
		_, _, err := config.Load(config.Sources{Home: "/h",
			ReadFile: files(map[string]string{"/h/.nccl.conf": text})})
		var e *config.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("untyped error %v", err)
		}
	})
}

// FuzzNumber: what ParseNumber takes and drops is the whole text, and the
// value survives being written again.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0x1F", "-010", " +9223372036854775808z", "0x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, rest, ok := config.ParseNumber(s)
		if !strings.HasSuffix(s, rest) {
			t.Fatalf("%q is no end of %q", rest, s)
		}
		if again, _, _ := config.ParseNumber(fmt.Sprint(v)); ok && again != v {
			t.Fatalf("%d read again is %d", v, again)
		}
	})
}

// TestNoInfiniBand: both ways to say so leave only sockets.
func TestNoInfiniBand(t *testing.T) {
	for _, env := range []string{"NCCL_IB_DISABLE=1", "NCCL_NET=socket"} {
		c, w := load(t, config.Sources{Flags: []string{"NCCL_IB_HCA=mlx5", env}})
		if matches := c.Topo.IBHCA == "mlx5" || c.Topo.IBHCA == ""; matches && !c.Topo.SocketsOnly ||
			len(w) > 0 {
			t.Errorf("%s: %q, %v", env, c.Topo.IBHCA, w)
		}
	}
	if c, _ := load(t, config.Sources{Flags: []string{"NCCL_IB_HCA=mlx5", "NCCL_IB_DISABLE=0",
		"NCCL_NET=IB"}}); c.Topo.IBHCA != "mlx5" || c.Topo.SocketsOnly {
		t.Errorf("%q", c.Topo.IBHCA)
	}
}

// TestP2POffSplitsNVLinkDomains: without P2P NCCL does not look for a
// multi-node NVLink domain (init.cc:914), unless NCCL_MNNVL_ENABLE=1 asks for it.
func TestP2POffSplitsNVLinkDomains(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want bool
	}{
		{nil, false},
		{[]string{"NCCL_P2P_DISABLE=1"}, true},
		{[]string{"NCCL_P2P_LEVEL=LOC"}, true},
		{[]string{"NCCL_P2P_LEVEL=NVL"}, false},
		{[]string{"NCCL_P2P_DISABLE=1", "NCCL_MNNVL_ENABLE=1"}, false},
		{[]string{"NCCL_MNNVL_ENABLE=0"}, true},
	} {
		cfg, _, err := config.Load(config.Sources{Flags: c.env})
		if err != nil || cfg.Topo.SplitHosts != c.want {
			t.Errorf("%v: split %v (%v), want %v", c.env, cfg.Topo.SplitHosts, err, c.want)
		}
	}
}
