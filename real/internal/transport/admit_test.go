package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestAdmit: of a silent caller, an unknown peer and two expected ones those two are admitted,
// at once; the listener serves again afterwards, and ends with its context.
func TestAdmit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ln := l.(*net.TCPListener)
	call := func(word string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, word); err != nil {
			t.Fatal(err)
		}
		return c
	}
	errStranger := errors.New("stranger")
	check := func(c net.Conn, known func()) (byte, error) {
		var b [2]byte
		if _, err := io.ReadFull(c, b[:]); err != nil || b[0] != 'g' {
			return 0, errStranger
		}
		known()
		return b[1], nil
	}
	for range 2 {
		silent, stranger := call(""), call("xx")
		call("g1")
		call("g2")
		got := ""
		// A silent caller that held up the others would do so for a day.
		err := Admit(context.Background(), ln, 24*time.Hour, check, func(c net.Conn, word byte) bool {
			got += string(word)
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			c.Close()
			return len(got) == 2
		})
		if err != nil || got != "12" && got != "21" {
			t.Fatalf("admitted %q: %v", got, err)
		}
		for who, c := range map[string]net.Conn{"silent caller": silent, "stranger": stranger} {
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Minute))
			if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the %s is not sent away: %v", who, err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := Admit(ctx, ln, time.Minute, check, func(net.Conn, byte) bool { return true }); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("nobody comes: %v", err)
	}
	l.Close()
	if err := Admit(context.Background(), ln, time.Minute, check, func(net.Conn, byte) bool {
		return true
	}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
}
