// Package team represents the processes of one run: this one alone, or ranks that a launcher or options
// started, joined by a bootstrap. It finds this process's place, connects to the others, compares how they
// were started, reports why one of them ends, and keeps the shared secret.
package team

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/simccl/simccl/real/internal/bootstrap"
)

// Team is the processes of a run, as one of them sees them.
type Team struct {
	Rank, NRanks int
	// Ctx ends with the caller's context, and if another rank dies or gives up: its cause is then that rank's
	// verdict.
	Ctx  context.Context
	Boot *bootstrap.Group // nil: all ranks belong to this process

	stop    context.CancelCauseFunc
	root    *bootstrap.Root
	silence time.Duration
	command context.Context // context of the whole command: a signal ends it
	unwatch func() bool
}

// Assemble waits for all ranks. If one dies, the others' context ends with its name.
func Assemble(ctx context.Context, p Place, nranks int) (*Team, error) {
	t := &Team{NRanks: nranks, silence: 5 * time.Second, command: ctx, unwatch: func() bool { return true }}
	t.Ctx, t.stop = context.WithCancelCause(ctx)
	if p.Rank < 0 {
		return t, nil
	}
	t.Rank = p.Rank
	opt := bootstrap.Options{Silence: t.silence}
	var err error
	if t.root, err = p.meet(nranks, opt); err != nil {
		if t.root != nil {
			t.root.Close()
		}
		return nil, err
	}
	if t.Boot, err = bootstrap.Join(t.Ctx, p.id, p.Rank, nranks, opt); err != nil {
		t.dismiss()
		return nil, t.Own(hint(err))
	}
	// The others learn of a signal at once, whatever this rank is doing.
	t.unwatch = context.AfterFunc(ctx, func() { t.Boot.Abort(context.Cause(ctx)) })
	go func() {
		select {
		case <-t.Boot.Failed():
			t.stop(t.Boot.Err())
		case <-t.Ctx.Done():
		}
	}()
	return t, nil
}

// hint adds what to do if the secrets differ.
func hint(err error) error {
	if !errors.Is(err, bootstrap.ErrRefused) {
		return err
	}
	return fmt.Errorf("%w; all ranks need the same %s or --secret-file, or one home directory, where each "+
		"user's key is", err, SecretVariable)
}

// BlamesOther reports whether an error was caused by another rank.
func BlamesOther(err error) bool {
	var dead *bootstrap.DeadError
	var gave *bootstrap.AbortError
	var sig *bootstrap.InterruptError
	var left *bootstrap.LeftError
	return errors.As(err, &dead) || errors.As(err, &gave) || errors.As(err, &sig) || errors.As(err, &left)
}

// Own adds the signal that ended this process, if any, in front of an error that it caused.
func (t *Team) Own(err error) error {
	if err == nil || t.command.Err() == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", context.Cause(t.command), context.Canceled)
}

// Here lists the ranks of this process; nil means all.
func (t *Team) Here() []int32 {
	if t.Boot == nil {
		return nil
	}
	return []int32{int32(t.Rank)}
}

// Several reports whether there are other processes.
func (t *Team) Several() bool { return t.Boot != nil && t.NRanks > 1 }

// Barrier waits for all ranks.
func (t *Team) Barrier() error {
	if t.Boot == nil {
		return nil
	}
	return t.Boot.Barrier()
}

var errDisagree = errors.New("ranks were started with different options")

// Agree returns an error if ranks were started with different data.
func (t *Team) Agree(what []byte) error {
	if t.Boot == nil {
		return nil
	}
	sum := sha256.Sum256(what)
	all, err := t.Boot.AllGather(sum[:])
	if err != nil {
		return err
	}
	for r, b := range all {
		if !bytes.Equal(b, sum[:]) {
			return Refuse("%v: rank %d's machine, sizes or NCCL_* differ from rank %d's", errDisagree, r,
				t.Rank)
		}
	}
	return nil
}

// Gather returns the values of all processes, in order of rank; a process alone gets only its own.
func Gather[T any](t *Team, mine T) ([]T, error) {
	if t.Boot == nil {
		return []T{mine}, nil
	}
	out := make([]T, t.NRanks)
	b, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	all, err := t.Boot.AllGather(b)
	if err != nil {
		return nil, err
	}
	for r, b := range all {
		if err := json.Unmarshal(b, &out[r]); err != nil {
			return nil, fmt.Errorf("what rank %d says: %w", r, err)
		}
	}
	return out, nil
}

// Give reports an error to all ranks, and returns it with the name of the rank that caused it: a broken
// connection is noticed before the root knows that a process died.
func (t *Team) Give(err error) error {
	if err == nil || t.Boot == nil {
		return err
	}
	if t.command.Err() != nil { // the other ranks know it already
		return t.Own(err)
	}
	var local Local
	var sig *bootstrap.InterruptError
	switch {
	case errors.As(err, &sig): // the present activity of this rank is irrelevant
		err = sig
	case errors.As(err, &local):
		t.Boot.Abort(err)
		return err
	}
	if BlamesOther(err) {
		return err
	}
	select {
	case <-t.Boot.Failed():
		err = blame(t.Boot.Err(), err)
	case <-t.command.Done():
		return t.Own(err)
	case <-time.After(t.silence + time.Second):
		t.Boot.Abort(err)
	}
	return err
}

// blame returns the verdict followed by this rank's own error; for an interrupted rank, only the verdict.
func blame(verdict, err error) error {
	var sig *bootstrap.InterruptError
	switch {
	case verdict == nil || strings.Contains(err.Error(), verdict.Error()):
		return err
	case errors.As(verdict, &sig):
		return verdict
	}
	return fmt.Errorf("%w (%w)", verdict, err)
}

// Leave announces the end of this rank; rank 0 stays until all ranks have left.
func (t *Team) Leave() {
	t.unwatch()
	switch {
	case t.Boot == nil:
	case t.command.Err() != nil:
		t.Boot.Abort(context.Cause(t.command)) // first: the end must not overtake it
	default:
		_ = t.Boot.Close()
	}
	t.dismiss()
	t.stop(nil)
}

// dismissTime is how long the root of an interrupted process stays to inform the others why it ends.
const dismissTime = 400 * time.Millisecond

// dismiss closes the root once all ranks have left or received the verdict.
func (t *Team) dismiss() {
	if t.root == nil {
		return
	}
	limit := 2 * t.silence
	if t.command.Err() != nil {
		limit = dismissTime
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = t.root.Wait(ctx)
	_ = t.root.Close()
}

// FileName inserts the rank before the ending of a name if there are several processes: t.json.gz becomes
// t.rank1.json.gz.
func (t *Team) FileName(name string) string {
	if !t.Several() {
		return name
	}
	dir, base := filepath.Split(name)
	stem, ending, _ := strings.Cut(base, ".")
	return fmt.Sprintf("%s%s.rank%d.%s", dir, stem, t.Rank, ending)
}

// OnOneHost reports whether all processes meet on this host.
func (t *Team) OnOneHost() bool { return t.Boot == nil || Loopback(t.Boot.Addr()) }

// Address returns the address at which the other ranks reach this one.
func (t *Team) Address() string {
	if t.Boot == nil {
		return ""
	}
	h, _, _ := net.SplitHostPort(t.Boot.Addr())
	return h
}
