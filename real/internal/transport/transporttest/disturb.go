package transporttest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Disturb makes the link between soft-RoCE's two devices lose, delay, duplicate, reorder or corrupt packets
// until the returned function is called, or the test ends; what is in netem's syntax. It skips the test
// unless dev/rxe/run.sh made the link.
func Disturb(t *testing.T, what string) (end func()) {
	t.Helper()
	if _, err := os.Stat("/run/wire.sh"); err != nil {
		t.Skip("the wire is not ours to disturb; dev/rxe/run.sh makes one that is")
	}
	var set []string
	end = func() {
		for _, dev := range set {
			_ = exec.Command("tc", "qdisc", "del", "dev", dev, "root").Run()
		}
		set = nil
	}
	t.Cleanup(func() { end() })
	for _, dev := range []string{"v0", "v1"} {
		args := append([]string{"qdisc", "replace", "dev", dev, "root", "netem"}, strings.Fields(what)...)
		if out, err := exec.Command("tc", args...).CombinedOutput(); err != nil {
			t.Fatalf("tc: %v: %s", err, out)
		}
		set = append(set, dev)
	}
	return end
}
