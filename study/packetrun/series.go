package packetrun

// Series is the queues and rates over time. A value holds from its time to the next; times count from the
// first start.
type Series struct {
	IntervalNs int64         `json:"intervalNs"`
	EndNs      int64         `json:"endNs"`
	Queues     []QueueSeries `json:"queues"` // of ports whose queue was sampled with something in it
	Rates      []RateSeries  `json:"rates"`
}

// QueueSeries is an egress queue of a switch: pairs of time in ns and bytes of data that wait.
type QueueSeries struct {
	Link   [2]int32   `json:"link"` // from switch, to node
	Points [][2]int64 `json:"points"`
}

// RateSeries is a flow: triples of time in ns, rate in bit/s that its congestion control allows, and bytes
// acknowledged so far.
type RateSeries struct {
	Flow   int32      `json:"flow"`
	Points [][3]int64 `json:"points"`
}

// series arranges samples by port and by flow; nil: there are none.
func (x *raw) series() *Series {
	in := x.result.Series
	if in == nil {
		return nil
	}
	since := func(at int64) int64 { return max(0, at-x.first) / nanosecond }
	s := &Series{IntervalNs: int64(x.every) / nanosecond, EndNs: since(int64(in.End)),
		Queues: []QueueSeries{},
		Rates:  []RateSeries{}}
	ofLink, ofFlow := map[int32]int{}, map[int32]int{}
	for _, q := range in.Queues {
		i, known := ofLink[q.Link]
		if !known {
			c := x.net.Cables[q.Link/2]
			ends := [2]int32{c.A, c.B}
			if q.Link%2 == 1 {
				ends = [2]int32{c.B, c.A}
			}
			i = len(s.Queues)
			ofLink[q.Link], s.Queues = i, append(s.Queues, QueueSeries{Link: ends})
		}
		s.Queues[i].Points = append(s.Queues[i].Points, [2]int64{since(int64(q.At)), q.Bytes})
	}
	for _, r := range in.Rates {
		i, known := ofFlow[r.Flow]
		if !known {
			i = len(s.Rates)
			ofFlow[r.Flow], s.Rates = i, append(s.Rates, RateSeries{Flow: r.Flow})
		}
		s.Rates[i].Points = append(s.Rates[i].Points, [3]int64{since(int64(r.At)), r.Rate, r.Acked})
	}
	return s
}
