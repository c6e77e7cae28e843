package ibv

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/simccl/simccl/real/internal/verbs"
)

// TestCards: ports and functions of a card have one path (net_ib.cc:521).
func TestCards(t *testing.T) {
	const a, b, vf = "/sys/devices/pci0000:16/0000:17:00.0", "/sys/devices/pci0000:16/0000:17:00.1",
		"/sys/devices/pci0000:16/0000:17:02.3"
	for _, c := range []struct {
		path  string
		merge bool
		want  string
	}{{a, true, a}, {b, true, a}, {vf, true, a}, {b, false, a},
		{vf, false, "/sys/devices/pci0000:16/0000:17:02.0"},
		{"/sys/devices/virtual/net/v0", true, "/sys/devices/virtual/net/v0"}, {"", true, ""}} {
		if got := cardPath(c.path, c.merge); got != c.want {
			t.Errorf("%q, functions merged %t: %q, want %q", c.path, c.merge, got, c.want)
		}
	}
}

// TestFusionIsChecked without any device.
func TestFusionIsChecked(t *testing.T) {
	port := func(name string, l verbs.LinkLayer) physical {
		return physical{near: verbs.End{Port: verbs.Port{Device: name, Layer: l, Mbps: 100}}}
	}
	n := &Net{phys: []physical{port("a", verbs.Ethernet), port("b", verbs.Ethernet),
		port("c", verbs.InfiniBand), port("d", verbs.Ethernet), port("e", verbs.Ethernet),
		port("f", verbs.Ethernet)}}
	for _, c := range []struct {
		ports []int
		off   bool
		want  string // of the name, or of the error
	}{
		{[]int{1, 0}, false, "b+a"}, {[]int{0}, true, "a"}, {nil, false, "1 to 4"},
		{[]int{0, 1, 3, 4, 5}, false, "1 to 4"},
		{[]int{0, 1}, true, "NCCL_IB_MERGE_NICS"}, {[]int{0, 2}, false, "link layer"},
		{[]int{0, 0}, false, "itself"}, {[]int{0, 9}, false, "there are 6"},
	} {
		n.set.NoFusion = c.off
		v, err := n.Fuse(c.ports...)
		if err == nil && n.virt[v].name != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("fuse %v: %v, want %q", c.ports, err, c.want)
		}
	}
}

// TestShownQPsAreChecked: what a peer shows is believed only where it fits.
func TestShownQPsAreChecked(t *testing.T) {
	near := &nic{near: verbs.End{Port: verbs.Port{Device: "a", Layer: verbs.Ethernet}}}
	good := func() hello {
		return hello{NICs: []verbs.Address{{Device: "b", Layer: verbs.Ethernet},
			{Device: "c", Layer: verbs.Ethernet}}, QPs: []farQP{{NIC: 0}, {NIC: 1}}}
	}
	for _, c := range []struct {
		name   string
		damage func(*hello)
		want   string
	}{
		{"nothing", func(*hello) {}, ""},
		{"a QP too few", func(h *hello) { h.QPs = h.QPs[:1] }, "1 QPs of 2 NICs, 2 QPs"},
		{"no NIC", func(h *hello) { h.NICs = nil }, "of 0 NICs"},
		{"five NICs", func(h *hello) { h.NICs = make([]verbs.Address, 5) }, "of 5 NICs"},
		{"a NIC that is not there", func(h *hello) { h.QPs[1].NIC = 2 }, "NIC 2 of 2"},
		{"a NIC below the first", func(h *hello) { h.QPs[1].NIC = -1 }, "NIC -1 of 2"},
		{"another link layer", func(h *hello) { h.NICs[1].Layer = verbs.InfiniBand },
			"c has another link layer (IB) than a (RoCE)"},
	} {
		k := &comm{nics: []*nic{near, near}, qps: make([]*queuePair, 2), far: good()}
		c.damage(&k.far)
		err := k.fits()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestHearing: a line is read to its end and no further; what is no line of
// JSON, or too long, is an error.
func TestHearing(t *testing.T) {
	in := strings.NewReader(`{"NICs":2,"QPs":3}` + "\nR")
	var g greeting
	if err := readLine(in, &g); err != nil || g.NICs != 2 || g.QPs != 3 || in.Len() != 1 {
		t.Errorf("heard %+v and left %d bytes: %v", g, in.Len(), err)
	}
	for _, bad := range []string{"", "x\n", `{"NICs":2}`, `{"NICs":"two"}` + "\n",
		strings.Repeat(" ", maxLine+1)} {
		if err := readLine(strings.NewReader(bad), &g); err == nil {
			t.Errorf("%.20q is heard", bad)
		}
	}
}

func TestCTSIs64Bytes(t *testing.T) {
	if n := unsafe.Sizeof(cts{}); n != ctsSize {
		t.Errorf("a CTS entry has %d bytes, want %d", n, ctsSize)
	}
}

func TestChosenFollowsNCCLsLists(t *testing.T) {
	for _, c := range []struct {
		list, dev string
		port      int
		want      bool
	}{
		{"", "mlx5_0", 1, true}, {"mlx5", "mlx5_3", 1, true}, {"mlx5_1", "mlx5_10", 1, true},
		{"=mlx5_1", "mlx5_10", 1, false},
		{"=mlx5_1", "mlx5_1", 1, true}, {"^mlx5_2", "mlx5_2", 1, false}, {"^mlx5_2", "mlx5_3", 1, true},
		{"mlx5_0:2", "mlx5_0", 1, false}, {"mlx5_0:2", "mlx5_0", 2, true}, {"mlx4_0,mlx5_1", "mlx5_1", 1,
			true},
	} {
		if got := Chosen(c.list, c.dev, c.port); got != c.want {
			t.Errorf("NCCL_IB_HCA=%s, %s port %d: %v, want %v", c.list, c.dev, c.port, got, c.want)
		}
	}
}

func TestSharesCoverAMessage(t *testing.T) {
	for _, size := range []int{0, 1, 127, 128, 1000, 1 << 20, 1<<20 + 1} {
		for nq := 1; nq <= 5; nq++ {
			next := 0
			for q := range nq {
				off, n := share(size, q, nq)
				if off != next || n < 0 {
					t.Fatalf("size %d QP %d of %d: part %d+%d, want it to start at %d", size, q, nq, off, n,
						next)
				}
				next = off + n
			}
			if next != size {
				t.Errorf("size %d over %d QPs: %d bytes covered", size, nq, next)
			}
		}
	}
}

// TestSharesAreWholeLines: all but the last part with bytes are equal multiples of 128 (net_ib.cc:2133).
func TestSharesAreWholeLines(t *testing.T) {
	for _, c := range []struct{ size, nq, off, n int }{{1000, 2, 512, 488}, {1024, 2, 512, 512},
		{1025, 2, 640, 385}, {100, 2, 100, 0}, {4096, 4, 1024, 1024}} {
		if off, n := share(c.size, 1, c.nq); off != c.off || n != c.n {
			t.Errorf("%d bytes over %d QPs: %d from %d, want %d from %d", c.size, c.nq, n, off, c.n, c.off)
		}
	}
}

// TestPortsOfACardDiffer: functions of a card count their ports from one each; the plugin goes on counting
// over all of them (net_ib.cc:946), so that NCCL, which knows a card by its path, distinguishes them. A
// device without a card counts by itself.
func TestPortsOfACardDiffer(t *testing.T) {
	n := &Net{}
	for _, c := range []struct {
		card string
		num  uint8
		want int
	}{{"/a", 1, 1}, {"/a", 1, 2}, {"/b", 1, 1}, {"/a", 1, 3}, {"/b", 2, 3}, {"", 1, 1}, {"", 1, 1}} {
		n.use(physical{card: c.card, near: verbs.End{Port: verbs.Port{Device: "m", Num: c.num}}})
		if got := n.phys[len(n.phys)-1].port; got != c.want {
			t.Errorf("port %d of %q shows the number %d, want %d", c.num, c.card, got, c.want)
		}
	}
	if len(n.virt) != len(n.phys) {
		t.Errorf("%d devices of %d ports", len(n.virt), len(n.phys))
	}
}

// TestPeakOfMessages: perftest searches the peak of at most 20,000 messages, unless it runs for a time, or an
// option leaves the peak out.
func TestPeakOfMessages(t *testing.T) {
	for _, c := range []struct {
		n    int
		set  PerfConfig
		peak bool
	}{{3, PerfConfig{}, true}, {3, PerfConfig{NoPeak: true}, false}, {3, PerfConfig{Duration: 1}, false},
		{20_001, PerfConfig{}, false}} {
		c.set.Size = 1
		s := side{c: &c.set, posted: make([]int64, c.n), finished: make([]int64, c.n)}
		for i := range c.n {
			s.posted[i], s.finished[i] = int64(10*i), int64(10*i+5)
		}
		if p := s.bandwidth(); p.Iters != c.n || (p.Peak > 0) != c.peak {
			t.Errorf("%d messages, %+v: peak %g", c.n, c.set, p.Peak)
		}
	}
}
