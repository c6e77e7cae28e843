package bootstrap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/real/internal/psk"
)

// ErrRefused is returned when the other side does not prove the secret.
var ErrRefused = psk.ErrRefused

// ErrNoRank is returned where something else than a rank of this version
// listens.
var ErrNoRank = errors.New("no rank of this version answers there")

// DeadError names the rank whose death ended the communicator.
type DeadError struct {
	Rank   int
	Reason string
	// Root: what is known is that the root, which the rank hosts, has closed.
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

// InterruptError names the rank whose process got a signal to end.
type InterruptError struct {
	Rank   int
	Signal string // SIGINT, SIGTERM
}

func (e *InterruptError) Error() string {
	return fmt.Sprintf("rank %d was interrupted (%s)", e.Rank, e.Signal)
}

// MismatchError says how the ranks were started differently.
type MismatchError struct{ Reason string }

func (e *MismatchError) Error() string { return e.Reason }

// LeftError is returned by a receive from a rank that has closed its side.
type LeftError struct{ Rank int }

func (e *LeftError) Error() string {
	return fmt.Sprintf("rank %d left before it sent what was waited for", e.Rank)
}

// TimeoutError says which wait ran out, and which ranks were missing.
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

// Timeout makes TimeoutError satisfy the convention of package net.
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
