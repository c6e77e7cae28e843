package logcheck_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
)

// asRCCL writes lines of NCCL's form as RCCL 2.30.4 prints them (init.cc:937, 2027, 2031, 2188).
func asRCCL(text string) string {
	const end = " comm 0x510000 nRanks 16"
	for _, form := range [][2]string{
		{`(?m)(RCCL version : \S+)$`, "$1-HEAD:abcdef\nHIP version  : 7.14.0\nROCm version : 7.14.0.0-1"},
		{`(?m)(NCCL INFO Ring )0?(\d+ : .*)$`, "$1$2" + end + " busId 5000"},
		{`(?m)(NCCL INFO Trees \[.*)$`, "$1" + end + " busId 5000"},
		{`(\d+) coll channels, (\d+) collnet channels, (\d+) nvls channels, (\d+) p2p channels, (\d+) p2p ` +
			`channels per peer`,
			"comm:0x510000, nRanks:16, nNodes:2, coll channels:$1 collnet channels:$2, " +
				"nvls channels:$3, p2p channels:$4, p2p channels per peer:$5, shiftSize:1"},
	} {
		text = regexp.MustCompile(form[0]).ReplaceAllString(text, form[1])
	}
	return text
}

// checkRCCL is check --log LOG --topo MACHINE.
func checkRCCL(t *testing.T, text, machine string) (*logcheck.Report, error) {
	t.Helper()
	q := &logcheck.Request{Logs: []string{"rccl.log"}, Topo: machine}
	return q.Run(func(name string) ([]byte, error) {
		if name == machine {
			return os.ReadFile(golden.Root(t, "testdata", "topos", machine+".xml"))
		}
		return []byte(text), nil
	}, nil)
}

// TestLogsOfRCCL: a log in RCCL's forms is compared by RCCL's rules with the machine's topology file, and
// what differs is named with RCCL's name; without the file, or of a release without rules, it is refused.
func TestLogsOfRCCL(t *testing.T) {
	for _, version := range []string{"2.30.4", "2.28.3"} {
		for _, machine := range []string{"rccl/mi300x-8-thor2-genoa", "rccl/mi355x-8-thor2",
			"rccl/frontier-mi250x-slingshot"} {
			text := asRCCL(initOf(t, "rccl-"+version, machine, 2))
			if !strings.Contains(text, "XGMI") || strings.Contains(text, "NVL[") {
				t.Errorf("%s: links are not of XGMI", machine)
			}
			rep, err := checkRCCL(t, text, machine)
			if err != nil || !rep.Equal || compared(rep) < 100 || rep.Version != "rccl-"+version ||
				rep.Sections["channels"].Compared < 2 || rep.Sections["rings"].Compared < 16 {
				t.Errorf("%s by %s: %v, %+v", machine, version, err, rep)
			}
		}
	}
	const machine = "rccl/mi300x-8-thor2-genoa"
	text := asRCCL(initOf(t, "rccl-2.30.4", machine, 2))
	text += "node0:0:0 [0] NCCL INFO AllReduce: 33554432 Bytes -> Algo TREE proto LL " +
		"channel{Lo..Hi}={0..63}\n"
	rep, err := checkRCCL(t, strings.Replace(text, "coll channels:64", "coll channels:48", 1), machine)
	if err != nil || rep.Equal || !strings.Contains(rep.Text(),
		"RCCL TREE LL channels 0..63 → simccl TREE SIMPLE") ||
		!strings.Contains(rep.Text(), `RCCL "48 coll channels`) {
		t.Errorf("%v\n%s", err, rep.Text())
	}
	var amd *ncclog.AMDError
	if _, err := checkRCCL(t, text, ""); !errors.As(err, &amd) || !strings.Contains(err.Error(), "--topo") {
		t.Errorf("without a topology: %v", err)
	}
	old := strings.Replace(text, "RCCL version : 2.30.4", "RCCL version : 2.27.7", 1)
	if _, err := checkRCCL(t, old, machine); err == nil || !strings.Contains(err.Error(), "2.27.7") {
		t.Errorf("of 2.27.7: %v", err)
	}
}
