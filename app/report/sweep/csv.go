package sweep

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/simccl/simccl/scenario"
)

// csvHead are the columns of CSV; units are in the names. New ones come at the end.
// Those that end in _gbps hold GB/s, not Gb/s: those of _GBps say so, and stay when the
// others go, with the release after the next.
var csvHead = []string{"op", "bytes", "count", "type", "redop", "root", "us", "algbw_gbps", "busbw_gbps",
	"inplace_us", "inplace_algbw_gbps", "inplace_busbw_gbps",
	"algo", "proto", "nchannels", "model_us", "limiting_link", "expect_busbw_gbps", "simulated", "margin",
	"regret", "best",
	"algbw_GBps", "busbw_GBps", "inplace_algbw_GBps", "inplace_busbw_GBps", "expect_busbw_GBps",
	"draws", "least_us", "most_us"}

// CSV writes rows for a table program, one a size: a header, bytes, microseconds and
// 10^9 bytes a second; what a row has not is empty.
func CSV(w io.Writer, rows []scenario.Row) error {
	c := csv.NewWriter(w)
	if err := c.Write(csvHead); err != nil {
		return err
	}
	num := func(v float64) string { return strconv.FormatFloat(v, 'g', 10, 64) }
	for i := range rows {
		r := &rows[i]
		f := &r.Facts
		regret := ""
		if f.Regret != nil {
			regret = num(*f.Regret)
		}
		draws, least, most := "", "", ""
		if d := f.Draws; d != nil {
			draws, least, most = strconv.Itoa(d.N), num(d.LeastUs), num(d.MostUs)
		}
		if err := c.Write([]string{r.Func, strconv.FormatInt(int64(r.Bytes), 10),
			strconv.FormatInt(r.Count, 10), r.Type, r.RedOp, strconv.Itoa(r.Root),
			num(r.Out.Time.Micros()), num(r.Out.AlgBW), num(r.Out.BusBW), num(r.In.Time.Micros()),
			num(r.In.AlgBW), num(r.In.BusBW),
			f.Algo, f.Proto, strconv.Itoa(f.Channels), num(f.ModelUs), f.Limit, num(f.Expect), f.Simulated,
			num(f.Margin), regret, f.Best,
			num(r.Out.AlgBW), num(r.Out.BusBW), num(r.In.AlgBW), num(r.In.BusBW), num(f.Expect), draws, least,
			most}); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
