package msccl

import (
	"strings"
	"testing"
)

// TestStepsHaveBounds: a step waits for one that there is, before it, and touches chunks that there are; the
// last that may be are taken.
func TestStepsHaveBounds(t *testing.T) {
	right := own(t, "allpairs4.xml")
	const (
		waits = `depid="1" deps="1"` // of step 1 of gpu 0 tb 0
		block = `<tb id="1" send="1" recv="1" chan="0">`
	)
	for _, c := range []struct{ old, now, want string }{
		{waits, waits, ""},
		{waits, `depid="3" deps="1"`, ""},
		{waits, `depid="4" deps="1"`, "tb 0 step 1: depid=4 deps=1: the gpu has no such step"},
		{waits, `depid="1" deps="0"`, ""},
		{waits, `depid="1" deps="2"`, "tb 0 step 1: depid=1 deps=2: the gpu has no such step"},
		{waits, `depid="1" deps="-1"`, "depid=1 deps=-1: the gpu has no such step"},
		{waits, `depid="0" deps="0"`, ""},
		{waits, `depid="0" deps="1"`, "depid=0 deps=1: waits for itself or a later step"},
		{waits, `depid="0" deps="2"`, "depid=0 deps=2: waits for itself or a later step"},
		{`srcbuf="s" srcoff="0" dstbuf="o"`, `srcbuf="s" srcoff="8" dstbuf="o"`, ""},
		{`srcbuf="s" srcoff="0" dstbuf="o"`, `srcbuf="s" srcoff="9" dstbuf="o"`,
			"reads chunks 9 to 12 of s, which has 12"},
		{`dstbuf="o" dstoff="0" cnt="4" depid="1"`, `dstbuf="s" dstoff="8" cnt="4" depid="1"`, ""},
		{`dstbuf="o" dstoff="0" cnt="4" depid="1"`, `dstbuf="o" dstoff="1" cnt="4" depid="1"`,
			"writes chunks 1 to 4 of o, which has 4"},
		{block, `<tb id="1" send="0" recv="1" chan="0">`, "gpu 0 tb 1: is joined to itself; use cpy"},
		{block, `<tb id="1" send="-1" recv="1" chan="0">`,
			"tb 1 step 0: type s sends, but the tb has send=-1"},
		{block, `<tb id="1" send="1" recv="-1" chan="0">`, "step 1: type r receives, but the tb has recv=-1"},
		{block, `<tb id="1" send="2" recv="1" chan="0">`,
			"gpu 0 tb 2: uses the connection to gpu 2 on channel 0 like tb 1; give it another chan"},
	} {
		if strings.Count(right, c.old) < 1 {
			t.Fatalf("%s is not in the schedule", c.old)
		}
		_, err := Read([]byte(strings.Replace(right, c.old, c.now, 1)), "x.xml")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.now, err, c.want)
		}
	}
}
