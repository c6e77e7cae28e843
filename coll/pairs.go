package coll

import (
	"fmt"
	"slices"
)

// AllToAllV is the word for an alltoall whose ranks exchange unequal counts: a group of
// ncclSend and ncclRecv, as PyTorch's all_to_all_single with splits is. NCCL has no call
// of this name; ParseFunc reads the word as AllToAll.
const AllToAllV = "all_to_all_v"

// Variable reports whether a word names an alltoall of unequal counts.
func Variable(word string) bool { return unsuffixed(word) == fold(AllToAllV) }

// Pairs are the counts of an alltoall by sender and receiver, in elements. Parts lie one
// behind the other: in a sender's buffer by receiver, in a receiver's by sender. It is
// not changed once made.
type Pairs struct {
	n                int64
	counts, from, to []int64 // sender by sender
	sent, received   []int64 // by rank
	total            int64
}

// MaxPairRanks bounds the ranks of Pairs: what is kept grows with their square.
const MaxPairRanks = 4096

// maxPairs bounds the sum of all counts, so that no offset in bytes can overflow.
const maxPairs = 1 << 52

// PairError says which count of Pairs cannot be.
type PairError struct {
	Src, Dst int // -1: none
	Problem  string
}

// Error names the pair.
func (e *PairError) Error() string {
	if e.Src < 0 {
		return e.Problem
	}
	return fmt.Sprintf("from rank %d to rank %d: %s", e.Src, e.Dst, e.Problem)
}

// NewPairs takes the counts of n ranks, sender by sender. The error is a *PairError.
func NewPairs(n int, counts []int64) (*Pairs, error) {
	if n < 1 || n > MaxPairRanks || len(counts) != n*n {
		return nil,
			&PairError{-1, -1,
				fmt.Sprintf("%d counts for %d ranks; give one for each sender and receiver of at most %d "+
					"ranks", len(counts), n, MaxPairRanks)}
	}
	p := &Pairs{n: int64(n), counts: slices.Clone(counts), from: make([]int64, n*n), to: make([]int64, n*n),
		sent: make([]int64, n), received: make([]int64, n)}
	for i, c := range counts {
		src, dst := i/n, i%n
		switch {
		case c < 0:
			return nil, &PairError{src, dst, fmt.Sprintf("%d is negative", c)}
		case c > maxPairs || p.total+c > maxPairs:
			return nil, &PairError{src, dst, "more elements than any memory"}
		}
		p.from[i], p.to[i] = p.sent[src], p.received[dst]
		p.sent[src] += c
		p.received[dst] += c
		p.total += c
	}
	return p, nil
}

// Ranks is how many ranks exchange.
func (p *Pairs) Ranks() int { return int(p.n) }

func (p *Pairs) at(src, dst int32) int64 { return int64(src)*p.n + int64(dst) }

// At is how many elements src sends dst.
func (p *Pairs) At(src, dst int32) int64 { return p.counts[p.at(src, dst)] }

// From is where in src's buffer what it sends dst begins, in elements.
func (p *Pairs) From(src, dst int32) int64 { return p.from[p.at(src, dst)] }

// To is where in dst's buffer what src sends it begins, in elements.
func (p *Pairs) To(src, dst int32) int64 { return p.to[p.at(src, dst)] }

// Sent is what a rank sends to all, itself included, in elements.
func (p *Pairs) Sent(rank int32) int64 { return p.sent[rank] }

// Received is what a rank receives from all, itself included, in elements.
func (p *Pairs) Received(rank int32) int64 { return p.received[rank] }

// Count is the mean of all pairs, rounded up: the count of an alltoall of as many
// elements.
func (p *Pairs) Count() int64 { return (p.total + p.n*p.n - 1) / (p.n * p.n) }

// Largest is the most that one rank sends another, in elements.
func (p *Pairs) Largest() int64 { return slices.Max(p.counts) }

// Buffer is the largest send or receive buffer of a rank, in elements.
func (p *Pairs) Buffer() int64 { return max(slices.Max(p.sent), slices.Max(p.received)) }

// Equal reports whether all pairs exchange equally much, which is an alltoall.
func (p *Pairs) Equal() bool { return slices.Min(p.counts) == slices.Max(p.counts) }

// Spread says how unequal the counts are, in elements.
type Spread struct {
	// Most, Mean and Least are of the pairs of sender and receiver.
	Most  int64   `json:"most"`
	Mean  float64 `json:"mean"`
	Least int64   `json:"least"`
	// MostReceived is what the busiest receiver gets, Imbalance that over the mean of all
	// ranks; 0 where nothing is sent.
	MostReceived int64   `json:"most_received"`
	Imbalance    float64 `json:"imbalance"`
}

// Spread sums the counts up.
func (p *Pairs) Spread() Spread {
	s := Spread{Most: p.Largest(), Mean: float64(p.total) / float64(p.n*p.n), Least: slices.Min(p.counts),
		MostReceived: slices.Max(p.received)}
	if p.total > 0 {
		s.Imbalance = float64(s.MostReceived) * float64(p.n) / float64(p.total)
	}
	return s
}

// EqualSpread is that of an alltoall of equal counts.
func EqualSpread(count int64, ranks int) Spread {
	s := Spread{Most: count, Mean: float64(count), Least: count, MostReceived: count * int64(ranks)}
	if count > 0 {
		s.Imbalance = 1
	}
	return s
}
