package jobs

import (
	"testing"

	"github.com/simccl/simccl/units"
)

// TestTimes: both forms of a file of times, and where they are wrong.
func TestTimes(t *testing.T) {
	for _, text := range []string{"op,us\nqkv, 1.5\n# no\nup,2\n", `{"qkv": 1.5, "up": 2}`} {
		got, err := readTimes([]byte(text), "t")
		if err != nil || len(got) != 2 || got["qkv"] != 1500*units.Nanosecond ||
			got["up"] != 2*units.Microsecond {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"qkv,1\nup,-3\n": `t:2:4: "-3" is no time in microseconds from 0 to 1e+09; write op,us a line, for example qkv,123.4`,
		"qkv,1\nqkv,2\n": `t:2:1: operation "qkv" has no name, or a time already; write op,us a line, for example qkv,123.4`,
		"qkv\n":          "t:1:1: 1 fields; write op,us a line, for example qkv,123.4",
		"qkv,\"1\n": "t:1:8: extraneous or missing \" in quoted-field; write op,us a line, for " +
			"example qkv,123.4",
		`{"qkv": -1}`:        `t:1:1: "qkv" has no time in microseconds from 0 to 1e+09; write {"qkv": 123.4}`,
		`{"qkv": "x"}`:       "",
		"qkv,NaN\n":          `t:1:5: "NaN" is no time in microseconds from 0 to 1e+09; write op,us a line, for example qkv,123.4`,
		"qkv,1\nqkv,x,y,z\n": "t:2:9: 4 fields; write op,us a line, for example qkv,123.4",
	} {
		if _, err := readTimes([]byte(text), "t"); err == nil || want != "" && err.Error() != want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}
