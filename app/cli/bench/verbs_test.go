package bench

import (
	"net"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/real/perftest"
)

// TestVerbsServerIsOfThisHost: by default, the server cannot be
// reached from elsewhere.
func TestVerbsServerIsOfThisHost(t *testing.T) {
	def := verbs(&cli.App{}).Flags().Lookup("listen").DefValue
	for listen, want := range map[string]bool{def: true, "0.0.0.0": false} {
		v := VerbsOptions{Request: perftest.Request{Listen: listen}}
		l, err := v.Listener()
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().(*net.TCPAddr).IP.IsLoopback(); got != want {
			t.Errorf("--listen %s waits at %v", listen, l.Addr())
		}
		l.Close()
	}
	if _,
		err := (&perftest.Request{Listen: "203.0.113.1"}).Listener(); cli.ExitStatus(err) != cli.StatusUsage {
		t.Errorf("an address of another host: %v", err)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	keys := map[string]bool{}
	for _, environ := range [][]string{nil, {"SIMCCL_SECRET=a"}, {"SIMCCL_SECRET=b"}} {
		k, err := (&VerbsOptions{}).key(&cli.App{Process: process.Process{Environ: environ}}, def+":0")
		if err != nil {
			t.Fatal(err)
		}
		keys[string(k)] = true
	}
	if len(keys) != 3 {
		t.Errorf("%d keys of 3 secrets", len(keys))
	}
}
