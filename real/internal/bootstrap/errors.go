package bootstrap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/real/internal/psk"
)

// ErrRefused is returned if the other side does not prove the secret.
var ErrRefused = psk.ErrRefused

// ErrNoRank is returned if the listener is no rank of this version.
var ErrNoRank = errors.New("no rank of this version answers there")

// DeadError names the rank whose death ended the communicator.
type DeadError struct {
	Rank   int
	Reason string
	// Root: it is only known that the root, which the rank hosts, has closed.
	Root bool
}

func (e *DeadError) Error() string {
	if e.Root {
		return fmt.Sprintf("rank %d died, or the root that it hosts was cut off: %s", e.Rank, e.Reason)
	}
	return fmt.Sprintf("rank %d died: %s", e.Rank, e.Reason)
}

// AbortError names the rank that gave up, and why.
type AbortError struct {
	Rank   int
	Reason string
}

func (e *AbortError) Error() string { return fmt.Sprintf("rank %d aborted: %s", e.Rank, e.Reason) }

// InterruptError names the rank whose process received a signal to end.
type InterruptError struct {
	Rank   int
	Signal string // SIGINT, SIGTERM
}

func (e *InterruptError) Error() string {
	return fmt.Sprintf("rank %d was interrupted (%s)", e.Rank, e.Signal)
}

// MismatchError says in which way the ranks were started differently.
type MismatchError struct{ Reason string }

func (e *MismatchError) Error() string { return e.Reason }

// LeftError is returned by a receive from a rank that has left.
type LeftError struct{ Rank int }

func (e *LeftError) Error() string {
	return fmt.Sprintf("rank %d left before it sent what was waited for", e.Rank)
}

// TimeoutError names the wait that exceeded its limit, and the missing ranks.
type TimeoutError struct {
	What  string
	Ranks []int
}

func (e *TimeoutError) Error() string {
	if len(e.Ranks) == 0 {
		return e.What + ": timed out"
	}
	return fmt.Sprintf("%s: timed out waiting for rank %s", e.What, rankList(e.Ranks))
}

// Timeout returns true, as package net expects of a timeout.
func (e *TimeoutError) Timeout() bool { return true }

func rankList(ranks []int) string {
	const most = 16
	var b strings.Builder
	for i, r := range ranks {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(ranks)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(r))
	}
	return b.String()
}
