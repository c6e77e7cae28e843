package team

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// limit is how long all ranks have to come.
const limit = 60 * time.Second

// maxLine bounds an answer of the launcher.
const maxLine = 64 << 10

// key is under which the word is kept, apart from what others may keep.
const key = "simccl-root"

// openPMI returns the connection with the number of PMI_FD.
func openPMI(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "PMI_FD")
	if f == nil {
		return nil, fmt.Errorf("PMI_FD=%d: no file", fd)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("PMI_FD=%d: %w", fd, err)
	}
	return c, nil
}

// sharePMI returns rank 0's word on every rank; only rank 0 has one to give, a
// single one without spaces. All ranks call it, once: the launcher then knows
// them as done with PMI, so a later failure is theirs to report.
func sharePMI(c net.Conn, rank int, word string) (string, error) {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	s := &session{conn: c, in: bufio.NewReaderSize(c, maxLine)}
	s.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")
	space := s.ask("cmd=get_my_kvsname", "my_kvsname")["kvsname"]
	if rank == 0 {
		s.ask(fmt.Sprintf("cmd=put kvsname=%s key=%s value=%s", space, key, word), "put_result")
	}
	s.ask("cmd=barrier_in", "barrier_out")
	word = s.ask(fmt.Sprintf("cmd=get kvsname=%s key=%s", space, key), "get_result")["value"]
	s.ask("cmd=finalize", "finalize_ack")
	if s.err == nil && word == "" {
		s.err = errors.New("the launcher has no word of rank 0")
	}
	if s.err != nil {
		return "", fmt.Errorf("PMI: %w", s.err)
	}
	return word, nil
}

// session is a conversation; it keeps its first error, and is silent then.
type session struct {
	conn net.Conn
	in   *bufio.Reader
	err  error
}

// ask sends a line and reads the answer, which must be of the given command and
// not a failure.
func (s *session) ask(line, answer string) map[string]string {
	if s.err != nil {
		return nil
	}
	if _, s.err = s.conn.Write([]byte(line + "\n")); s.err != nil {
		return nil
	}
	text, err := s.in.ReadSlice('\n')
	if err != nil {
		s.err = fmt.Errorf("%s: %w", strings.Fields(line)[0], err)
		return nil
	}
	out := fields(string(text))
	if rc := out["rc"]; out["cmd"] != answer || rc != "" && rc != "0" {
		s.err = fmt.Errorf("%s: answered %q", strings.Fields(line)[0], strings.TrimSpace(string(text)))
	}
	return out
}

// fields are the words of a line; msg, which may hold spaces, is of no use.
func fields(line string) map[string]string {
	out := map[string]string{}
	for w := range strings.FieldsSeq(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			out[k] = v
		}
	}
	return out
}
