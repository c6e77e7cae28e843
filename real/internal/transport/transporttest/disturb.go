package transporttest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Disturb makes the wire between soft-RoCE's two devices lose, delay, double,
// reorder or damage packets until the returned function is called, or the test
// ends: what is netem's own words. It skips where the wire is not ours.
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
