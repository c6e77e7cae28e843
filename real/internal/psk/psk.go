// Package psk opens channels between processes that share a secret: TLS 1.3 from the standard library
// encrypts and authenticates every byte, and CPace, a password-authenticated key exchange that is bound to
// the TLS session, proves that both ends know the secret.
//
// Neither an unknown peer that connects nor a false listener learns anything by which it could guess the
// secret offline: each connection tests one guess. Certificates prove nothing here; each process makes one
// and discards it. docs/adr/0017 has the reasons.
package psk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"syscall"
	"time"
)

// ErrRefused says that the two sides have different secrets.
var ErrRefused = errors.New("refused: the two sides have different secrets")

// ErrCut says that the connection ended before either side had proven anything. A listener that drops unknown
// peers because there are too many ends connections in this way; another attempt may succeed.
var ErrCut = errors.New("the connection closed during the handshake")

// HandshakeTime is the time that callers allow for a handshake: Dial and Admit wait until the connection's
// deadline.
const HandshakeTime = 20 * time.Second

// protocol is offered by TLS's ALPN, so that other programs, and other versions
// of this handshake, are refused by name.
const protocol = "simccl/2"

// MaxHello is the largest length of a hello in bytes.
const MaxHello = 255

// Conn is a channel whose two ends have proven the secret.
type Conn struct{ *tls.Conn }

// Close ends the connection immediately. TLS's own Close would wait for room to send an alert; an orderly end
// is announced by a message.
func (c *Conn) Close() error { return c.NetConn().Close() }

// certificate returns this process's certificate, which no peer verifies.
var certificate = sync.OnceValues(func() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
})

// binding returns a value that only the two ends of one TLS session share. As CPace includes it, a man in the
// middle, who has one session with each end, sees two different values and cannot forward messages.
func binding(c *tls.Conn) ([]byte, error) {
	s := c.ConnectionState()
	return s.ExportKeyingMaterial("EXPORTER-simccl-psk", nil, 32)
}

// channel is CPace's channel identifier.
var channel = []byte("simccl psk dialer acceptor")

// Answers of the acceptor to the dialer's proof.
const (
	wrong = 0
	right = 1
)

// Dial runs the dialer's side of a handshake over a connection. hello is sent to the acceptor, and
// authenticated. If Dial fails, the caller must close the connection.
func Dial(c net.Conn, secret, hello []byte) (*Conn, error) {
	t := tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		InsecureSkipVerify: true}) // CPace over the session's binding authenticates the acceptor
	if err := dial(t, secret, hello); err != nil {
		return nil, cut(err)
	}
	return &Conn{t}, nil
}

func dial(t *tls.Conn, secret, hello []byte) error {
	if len(hello) > MaxHello {
		return fmt.Errorf("a hello of %d bytes is over the limit of %d", len(hello), MaxHello)
	}
	if err := t.Handshake(); err != nil {
		return err
	}
	session, err := binding(t)
	if err != nil {
		return err
	}
	y := newScalar()
	x := &transcript{session: session, ya: shareOf(y, generator(secret, channel, session)), ada: hello,
		yb: make([]byte, shareSize)}
	if _, err := t.Write(append(append([]byte{byte(len(hello))}, hello...), x.ya...)); err != nil {
		return err
	}
	if _, err := io.ReadFull(t, x.yb); err != nil {
		return err
	}
	k, err := meet(y, x.yb)
	if err != nil {
		return err
	}
	x.derive(k)
	if _, err := t.Write(x.tag(x.ya, x.ada)); err != nil {
		return err
	}
	var answer [1 + tagSize]byte
	if _, err := io.ReadFull(t, answer[:1]); err != nil {
		return err
	}
	if answer[0] != right {
		return ErrRefused
	}
	if _, err := io.ReadFull(t, answer[1:]); err != nil {
		return err
	}
	if !hmac.Equal(answer[1:], x.tag(x.yb, x.adb)) {
		return ErrRefused
	}
	return nil
}

// Gate is the accepting side for a secret. It may serve many connections at once.
type Gate struct {
	secret []byte
	mu     sync.Mutex
	wrong  int
}

// NewGate returns the accepting side for a secret.
func NewGate(secret []byte) *Gate { return &Gate{secret: append([]byte(nil), secret...)} }

// Refused returns the number of dialers that had another secret.
func (g *Gate) Refused() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrong
}

// Admit runs the acceptor's side of a handshake and returns the dialer's hello. Until the dialer has proven
// the secret, Admit sends only TLS's own messages and one uniformly random group element. It calls proven
// before it informs the dialer that the secret is right, so that the caller can still drop the connection
// before the dialer relies on it. If Admit fails, the caller must close the connection.
func (g *Gate) Admit(c net.Conn, proven func()) (*Conn, []byte, error) {
	cert, err := certificate()
	if err != nil {
		return nil, nil, err
	}
	t := tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true})
	hello, err := g.admit(t, proven)
	if err != nil {
		return nil, nil, cut(err)
	}
	return &Conn{t}, hello, nil
}

func (g *Gate) admit(t *tls.Conn, proven func()) (hello []byte, err error) {
	if err := t.Handshake(); err != nil {
		return nil, err
	}
	session, err := binding(t)
	if err != nil {
		return nil, err
	}
	var size [1]byte
	if _, err := io.ReadFull(t, size[:]); err != nil {
		return nil, err
	}
	first := make([]byte, int(size[0])+shareSize)
	if _, err := io.ReadFull(t, first); err != nil {
		return nil, err
	}
	hello = first[:size[0]]
	y := newScalar()
	x := &transcript{session: session, ya: first[size[0]:], ada: hello,
		yb: shareOf(y, generator(g.secret, channel, session))}
	k, err := meet(y, x.ya)
	if err != nil {
		return nil, err
	}
	x.derive(k)
	if _, err := t.Write(x.yb); err != nil {
		return nil, err
	}
	proof := make([]byte, tagSize)
	if _, err := io.ReadFull(t, proof); err != nil {
		return nil, err
	}
	if !g.check(proof, x.tag(x.ya, x.ada)) {
		_, _ = t.Write([]byte{wrong})
		return nil, ErrRefused
	}
	proven()
	_, err = t.Write(append([]byte{right}, x.tag(x.yb, x.adb)...))
	return hello, err
}

// guessTime is the delay that a wrong proof imposes on all proofs that follow.
const guessTime = 20 * time.Millisecond

// check compares a proof with the expected one. Wrong ones wait in a queue, so that an attacker who guesses
// online over many connections gets at most 50 guesses a second.
func (g *Gate) check(got, want []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if hmac.Equal(got, want) {
		return true
	}
	g.wrong++
	time.Sleep(guessTime)
	return false
}

// cut returns ErrCut for a connection that ended, and other errors unchanged.
func cut(err error) error {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE,
		net.ErrClosed} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w (%w)", ErrCut, err)
		}
	}
	return err
}
