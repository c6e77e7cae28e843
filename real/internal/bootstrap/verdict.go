package bootstrap

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// verdict is the reason why a communicator failed, as sent over the network: every rank converts it to the
// same typed error.
type verdict struct {
	Kind  string `json:"kind"`
	Rank  int    `json:"rank"`
	Text  string `json:"text,omitempty"`
	Ranks []int  `json:"ranks,omitempty"`
}

// Kinds of verdicts, by the error that they become.
const (
	kindDead      = "dead"      // DeadError
	kindAbort     = "abort"     // AbortError
	kindInterrupt = "interrupt" // InterruptError; Text is the signal
	kindTimeout   = "timeout"   // TimeoutError
	kindMismatch  = "mismatch"  // MismatchError
)

// err converts a verdict to the error that callers see.
func (v *verdict) err() error {
	switch v.Kind {
	case kindDead:
		return &DeadError{Rank: v.Rank, Reason: v.Text}
	case kindInterrupt:
		return &InterruptError{Rank: v.Rank, Signal: v.Text}
	case kindTimeout:
		return &TimeoutError{What: v.Text, Ranks: v.Ranks}
	case kindMismatch:
		return &MismatchError{Reason: v.Text}
	}
	return &AbortError{Rank: v.Rank, Reason: v.Text}
}

func (v *verdict) frame(kind frameKind) frame {
	b, _ := json.Marshal(v) // strings and integers cannot fail
	return frame{kind: kind, tag: uint32(v.Rank), payload: b}
}

// maxReason bounds the text in bytes that one rank makes all others print.
const maxReason = 4096

// readVerdict decodes a verdict from another process. Its text is truncated, and unprintable characters are
// removed, because it is printed on a terminal.
func readVerdict(payload []byte) verdict {
	var v verdict
	if len(payload) > 16*maxReason || json.Unmarshal(payload, &v) != nil {
		return verdict{Kind: kindAbort, Text: "no reason that can be read"}
	}
	v.Text = strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, v.Text)
	if len(v.Text) > maxReason {
		v.Text = strings.ToValidUTF8(v.Text[:maxReason], "") + "…"
	}
	return v
}

// verdictOf converts a rank's reason for giving up to a verdict.
func verdictOf(rank int, cause error) verdict {
	if name := interrupted(cause); name != "" {
		return verdict{Kind: kindInterrupt, Rank: rank, Text: name}
	}
	return verdict{Kind: kindAbort, Rank: rank, Text: cause.Error()}
}

// interrupted returns the name of the signal that a context's cause carries, "" if none: either by a Signal
// method, or as os/signal's own contexts describe it.
func interrupted(cause error) string {
	var by interface{ Signal() os.Signal }
	if errors.As(cause, &by) {
		return signalName(by.Signal().String())
	}
	if text, ok := strings.CutSuffix(cause.Error(), " signal received"); ok {
		return signalName(text)
	}
	return ""
}

func signalName(text string) string {
	switch text {
	case "interrupt":
		return "SIGINT"
	case "terminated":
		return "SIGTERM"
	}
	return text
}
