package team

import (
	"bufio"
	"errors"
	"net"
	"testing"
)

// fuzzLauncher: whatever a launcher answers, Share ends with a word or with an
// error, never with both or neither.
func FuzzLauncher(f *testing.F) {
	f.Add([]byte("cmd=response_to_init rc=0\ncmd=my_kvsname rc=0 kvsname=k\n"+
		"cmd=put_result rc=0\ncmd=barrier_out rc=0\ncmd=get_result rc=0 value=w\ncmd=finalize_ack rc=0\n"),
		true)
	f.Add([]byte("cmd=response_to_init rc= \ncmd=my_kvsname\n=\n==\ncmd=x cmd=y\n"), false)
	f.Fuzz(func(t *testing.T, says []byte, first bool) {
		a, b := net.Pipe()
		defer a.Close()
		go func() {
			in := bufio.NewReader(b)
			go func() { _, _ = b.Write(says); b.Close() }()
			for {
				if _, err := in.ReadByte(); err != nil {
					return
				}
			}
		}()
		rank := 1
		if first {
			rank = 0
		}
		word, err := sharePMI(a, rank, "w")
		if (word == "") == (err == nil) {
			t.Fatalf("word %q with %v", word, err)
		}
	})
}

// testAnswersAreBounded: a launcher that never ends its line is an error, not
// memory without end.
func TestAnswersAreBounded(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	go func() {
		defer b.Close()
		in := bufio.NewReader(b)
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		for chunk := make([]byte, 4096); ; {
			if _, err := b.Write(chunk); err != nil {
				return
			}
		}
	}()
	if _, err := sharePMI(a, 1, ""); !errors.Is(err, bufio.ErrBufferFull) {
		t.Errorf("got %v", err)
	}
}
