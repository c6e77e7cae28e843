// Package bootstrap lets the ranks of a communicator find each other over TCP
// before any fast transport exists, in the shape of NCCL 2.28.9's bootstrap.cc:
// rank 0's process listens, every rank reports its address, each learns its
// successor, a ring gathers all addresses in n-1 steps. Ranks then exchange
// messages by tag, meet in barriers, and gather blobs around the ring.
//
// Beyond NCCL: every connection proves knowledge of a shared secret, every
// wait has a limit, and a rank that dies is named to all others within
// Options.Silence, so nothing hangs.
package bootstrap

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"time"
)

// secretSize is the length of the shared secret in bytes.
const secretSize = 16

// ID is the information that every rank needs to join: the address of the root and the secret. Its text form
// fits an environment variable.
type ID struct {
	Addr   string // host:port
	Secret [secretSize]byte
}

// NewSecret returns a random secret from the operating system.
func NewSecret() (s [secretSize]byte, err error) {
	_, err = rand.Read(s[:])
	return s, err
}

// String returns the text form, "simccl1/HOST:PORT/HEX".
func (id ID) String() string {
	return "simccl1/" + id.Addr + "/" + hex.EncodeToString(id.Secret[:])
}

// ParseID reads the text form.
func ParseID(s string) (ID, error) {
	var id ID
	parts := strings.Split(s, "/")
	if len(parts) != 3 || parts[0] != "simccl1" {
		return id, fmt.Errorf("unique id %q: not one of ours; write simccl1/HOST:PORT/SECRET", s)
	}
	if _, _, err := net.SplitHostPort(parts[1]); err != nil {
		return id, fmt.Errorf("unique id %q: address %q: %w", s, parts[1], err)
	}
	b, err := hex.DecodeString(parts[2])
	if err != nil || len(b) != secretSize {
		return id, fmt.Errorf("unique id %q: secret is not %d hexadecimal digits", s, 2*secretSize)
	}
	id.Addr = parts[1]
	copy(id.Secret[:], b)
	return id, nil
}

// Options are the limits of all waits; zero values select the defaults.
type Options struct {
	// Join is the time to wait for all ranks to report (default 60 s).
	Join time.Duration
	// Op is the longest wait of one Send, Recv, AllGather or Barrier (60 s).
	Op time.Duration
	// Ping is the interval of heartbeats (500 ms); a rank without a heartbeat for Silence counts as dead (5
	// s).
	Ping, Silence time.Duration
	// Host is the local address to listen on (default: the address from which the root is reached).
	Host string
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.Join, 60*time.Second)
	def(&o.Op, 60*time.Second)
	def(&o.Ping, 500*time.Millisecond)
	def(&o.Silence, 5*time.Second)
	return o
}
