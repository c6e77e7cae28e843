package perftest

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/units"
)

// Request is a measurement as a user requests it, in the words of perftest's options. Numbers of settings
// below 0 leave the setting unchanged. Errors are of package fail, with the members' names in braces.
type Request struct {
	Words         []string // tests; a word that is no test is the other side's address
	Size          string   // of a message; or allSizes
	AllSizes      bool
	Iters, QPs    int
	Depth         int // messages of a queue pair in flight
	Bidirectional bool
	NoPeak        bool
	Seconds       int // instead of Iters
	GID           int // index of the RoCE address
	SL            int // service level
	TrafficClass  int
	QPTimeout     int // exponent of NCCL_IB_TIMEOUT
	TCP           int // port on which both sides meet
	Serve         bool
	Listen        string // address on which Serve listens
}

// Plan is a validated Request.
type Plan struct {
	Host  string // HOST:PORT of the other side; empty: both ends belong to this machine
	Tests []string
	Sizes []int
	Case  Case // without test and size
}

// Plan parses the words and sizes and refuses invalid values.
func (r *Request) Plan() (*Plan, error) {
	p := &Plan{Case: Case{Iters: r.Iters, Duration: time.Duration(r.Seconds) * time.Second,
		QPs: r.QPs, TxDepth: r.Depth, Bidirectional: r.Bidirectional, NoPeak: r.NoPeak}}
	known := []string{"write", "read", "send", NCCL}
	for _, w := range r.Words {
		switch {
		case slices.Contains(known, w):
			p.Tests = append(p.Tests, w)
		case p.Host != "" || r.Serve:
			return nil,
				fail.Usage("bench verbs %s: write some of %s, and one HOST where the other side has {Serve}",
					w, strings.Join(known, ", "))
		default:
			p.Host = w
		}
	}
	if len(p.Tests) == 0 {
		p.Tests = known
	}
	switch {
	case r.Iters < 5 || r.QPs < 1 || r.QPs > 128 || r.Seconds < 0 || r.Depth < 1 || r.Depth > 512:
		return nil, fail.Usage("{Iters} %d {QPs} %d {Seconds} %d {Depth} %d: 5 messages or more, 1 to 128 "+
			"queue pairs, no time below 0, 1 to 512 in flight", r.Iters, r.QPs, r.Seconds, r.Depth)
	case r.SL > 15 || r.TrafficClass > 255 || r.QPTimeout > 31 || r.TCP < 1 || r.TCP > 65535:
		return nil, fail.Usage("{SL} %d {TrafficClass} %d {QPTimeout} %d {TCP} %d: levels go to 15, "+
			"classes to 255, exponents to 31, ports from 1 to 65535", r.SL, r.TrafficClass, r.QPTimeout,
			r.TCP)
	}
	if p.Host != "" {
		if _, _, e := net.SplitHostPort(p.Host); e != nil {
			p.Host = net.JoinHostPort(strings.Trim(p.Host, "[]"), strconv.Itoa(r.TCP))
		}
	}
	var err error
	p.Sizes, err = r.sizes()
	return p, err
}

func (r *Request) sizes() ([]int, error) {
	if r.AllSizes {
		return allSizes(), nil
	}
	n, err := units.ParseBytes(r.Size)
	if err != nil {
		return nil, fail.Usage("{Size}: %v", err)
	}
	if n < 1 || n > 1<<30 {
		return nil, fail.Usage("{Size} %s: from 1 byte to 1 GiB", r.Size)
	}
	return []int{int(n)}, nil
}

// Settings returns the given settings, changed as the request says.
func (r *Request) Settings(set netcfg.IB) netcfg.IB {
	if r.GID >= 0 {
		set.GIDIndex = units.Some(r.GID)
	}
	for _, s := range []struct {
		given int
		to    *uint8
	}{{r.SL, &set.Service.SL}, {r.TrafficClass, &set.Service.TC}, {r.QPTimeout, &set.Service.Timeout}} {
		if s.given >= 0 {
			*s.to = uint8(s.given)
		}
	}
	return set
}

// Address returns the address at which the two sides meet; with Serve, that of Listen on this host.
func (r *Request) Address() string { return net.JoinHostPort(r.Listen, strconv.Itoa(r.TCP)) }

// Listener listens at Address, by default on the loopback address only.
func (r *Request) Listener() (*net.TCPListener, error) {
	l, err := net.Listen("tcp", r.Address())
	if err != nil {
		return nil, fail.Usage("{Listen} %s {TCP} %d: %v", r.Listen, r.TCP, err)
	}
	return l.(*net.TCPListener), nil
}
