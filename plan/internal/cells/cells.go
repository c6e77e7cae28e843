// Package cells divides an operation over channels: by whole cells of data, and
// by iterations of the loop over chunks.
package cells

// Cells is a division of a channel range by whole cells of data: lo for the
// first channel, mid for each of nMid, hi for the last.
type Cells struct{ Lo, Mid, Hi, NMid int64 }

// Divide gives each channel the cells that match its share of the traffic,
// following enqueue.cc:596-625 for the only task of a launch (which starts on
// channel 0 with no traffic yet).
//
// Ten cells at three a channel are 3 + 2·3 + 1: lo 3, two channels with mid 3,
// hi 1. With at most three channels they are 3 + 3 + 4, for the last takes what
// an even division of the rest leaves over.
func Divide(total, perChannel, want int64, maxChannels int) Cells {
	perChannel = min(total, perChannel)
	lo := want
	if maxChannels == 1 {
		lo = total
	}
	lo = min(total, lo)
	d := Cells{Lo: lo}
	d.NMid = (total - lo) / perChannel
	d.Hi = (total - lo) % perChannel
	n := d.NMid + 1
	if d.Hi != 0 {
		n++
	}
	if int64(maxChannels) < n {
		d.NMid = int64(maxChannels) - 2
		perChannel = (total - lo) / (d.NMid + 1)
		d.Hi = perChannel + (total-lo)%(d.NMid+1)
	}
	if d.Hi == 0 && d.NMid != 0 {
		d.Hi = perChannel
		d.NMid--
	}
	if d.NMid != 0 {
		d.Mid = perChannel
	}
	return d
}

// Shift moves the cells of the other channels up by one.
func (d Cells) Shift() Cells {
	if d.NMid == 0 {
		return Cells{Lo: d.Hi}
	}
	d.Lo = d.Mid
	if d.NMid--; d.NMid == 0 {
		d.Mid = 0
	}
	return d
}
