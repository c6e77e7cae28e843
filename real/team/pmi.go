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

// limit is the time that all ranks have to join.
const limit = 60 * time.Second

// maxLine bounds an answer of the launcher.
const maxLine = 64 << 10

// key is the name under which the word is stored, distinct from other programs' names.
const key = "simccl-root"

// openPMI returns the connection of file descriptor PMI_FD.
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

// sharePMI returns rank 0's word on every rank; only rank 0 passes one, without spaces. All ranks must call
// it exactly once: it also completes PMI, so that a rank that fails later reports the failure itself.
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

// session is a PMI conversation; after its first error it sends nothing more.
type session struct {
	conn net.Conn
	in   *bufio.Reader
	err  error
}

// ask sends a line and reads the answer, which must be of the given command and report success.
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

// fields returns the key=value words of a line, up to msg, which may contain spaces and is not used.
func fields(line string) map[string]string {
	out := map[string]string{}
	for w := range strings.FieldsSeq(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			out[k] = v
		}
	}
	return out
}
