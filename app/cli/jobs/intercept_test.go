package jobs

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/intercept"
	"github.com/simccl/simccl/intercept/collector"
)

// TestHostSpeed: a host that is twice as fast takes half as long, and what says nothing or two
// things of it is refused with what to write.
func TestHostSpeed(t *testing.T) {
	for _, x := range []struct {
		speed, factor, want float64
		says                string
	}{
		{1, 1, 1, ""}, {2, 1, 0.5, ""}, {1, 3, 3, ""},
		{0, 1, 0, "--host-speed 0: write how many times as fast"},
		{math.NaN(), 1, 0, "--host-speed NaN: write"},
		{2, 3, 0, "--host-speed 2: --host-factor 3 says the same of the host"},
	} {
		o := InterceptOptions{Devices: "virtual", Time: "measured", Speed: x.speed, Factor: x.factor,
			Timeout: time.Minute}
		var how intercept.Options
		switch err := o.modes(&how); {
		case x.says == "" && (err != nil || how.Factor != x.want || how.Clock != collector.Measured):
			t.Errorf("%+v: factor %g, %v", x, how.Factor, err)
		case x.says != "" && (err == nil || !strings.HasPrefix(err.Error(), x.says)):
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// TestFailureNamesMissingData: a program that fails after calls without --data may have acted on
// what it did not receive; the error says so, and only then.
func TestFailureNamesMissingData(t *testing.T) {
	for _, x := range []struct {
		calls int
		data  bool
		hint  bool
	}{{4, false, true}, {4, true, false}, {0, false, false}} {
		res := &intercept.Result{Exit: 1, Calls: x.calls}
		err := interceptVerdict(res, x.data)
		if err == nil || !strings.Contains(err.Error(), "exit status 1") ||
			strings.Contains(err.Error(), "--data") != x.hint {
			t.Errorf("%+v: %v", x, err)
		}
	}
}
