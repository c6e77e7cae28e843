package bootstrap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrRefused is returned when the other side does not prove the secret.
var ErrRefused = errors.New("refused: the peer does not know the shared secret")

// DeadError names the rank whose death ended the communicator.
type DeadError struct {
	Rank   int
	Reason string
}

func (e *DeadError) Error() string { return fmt.Sprintf("rank %d died: %s", e.Rank, e.Reason) }

// AbortError names the rank that gave up, and why.
type AbortError struct {
	Rank   int
	Reason string
}

func (e *AbortError) Error() string { return fmt.Sprintf("rank %d aborted: %s", e.Rank, e.Reason) }

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
