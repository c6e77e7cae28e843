package quote_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/quote"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `""`},
		{"mlx5_0", `"mlx5_0"`},
		{"a\x1b[2J\u009b\u202e\x7f\n", `"a\x1b[2J\u009b\u202e\x7f\n"`},
		{"\xff\xfe", `"\xff\xfe"`},
		{strings.Repeat("ü", 100), `"` + strings.Repeat("ü", 100) + `"`},
		{strings.Repeat("ü", 101), `"` + strings.Repeat("ü", 100) + `" and 2 bytes more`},
		{strings.Repeat("x", 15<<20), `"` + strings.Repeat("x", 100) + `" and 15728540 bytes more`},
	} {
		if got := quote.Text(c.in); got != c.want {
			t.Errorf("%.20q: %s, want %s", c.in, got, c.want)
		}
	}
}
