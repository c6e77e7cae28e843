// Package psk opens channels between processes that share a secret: TLS 1.3
// from the standard library encrypts and authenticates every byte, and CPace, a
// password-authenticated key exchange that is bound to the TLS session, proves
// that both ends know the secret.
//
// Neither an unknown peer that connects nor a false listener learns
// anything by which a secret could be guessed offline: each connection tests one
// guess. Certificates prove nothing here; they are made for the process and
// thrown away. docs/adr/0017 has the reasons.
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

// ErrRefused: the two sides do not have the same secret.
var ErrRefused = errors.New("refused: the two sides have different secrets")

// ErrCut: the connection ended before either side had proven anything. A
// listener that drops unknown peers because there are too many ends connections so;
// another try may succeed.
var ErrCut = errors.New("the connection closed during the handshake")

// HandshakeTime is what callers give a handshake: Dial and Admit wait as long as
// the connection's deadline lets them.
const HandshakeTime = 20 * time.Second

// protocol is offered by TLS's ALPN, so that other programs, and other versions
// of this handshake, are refused by name.
const protocol = "simccl/2"

// MaxHello is the longest hello.
const MaxHello = 255

// Conn is a channel whose two ends have proven the secret.
type Conn struct{ *tls.Conn }

// Close ends the connection at once. TLS's own Close would wait for room to say
// so; an orderly exit is announced by a message.
func (c *Conn) Close() error { return c.NetConn().Close() }

// certificate is this process's: it is not checked.
var certificate = sync.OnceValues(func() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
})

// binding is a value that only the two ends of one TLS session share. As CPace
// is run over it, a man in the middle, who has a session with each end, has two
// different values and cannot pass messages on.
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

// Dial runs the dialer's side of a handshake over a connection. hello is sent to
// the acceptor, and authenticated. The connection is the caller's to close where
// Dial fails.
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

// Gate is the accepting side of a secret. It may serve many connections at once.
type Gate struct {
	secret []byte
	mu     sync.Mutex
	wrong  int
}

// NewGate makes the accepting side of a secret.
func NewGate(secret []byte) *Gate { return &Gate{secret: append([]byte(nil), secret...)} }

// Refused counts the callers who had another secret.
func (g *Gate) Refused() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrong
}

// Admit runs the acceptor's side of a handshake and returns the dialer's hello.
// Until the dialer has proven the secret, Admit sends TLS's own messages and one
// uniformly random group element. It calls proven before it says that the secret is
// right, so that who then gives the connection up does so before the dialer counts on it. The
// connection is the caller's to close where Admit fails.
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

// guessTime is what a wrong proof costs all that follow.
const guessTime = 20 * time.Millisecond

// check compares a proof with what it should be. Wrong ones queue up, so that
// someone who guesses online over many connections gets 50 guesses a second.
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

// cut distinguishes a connection that ended from one that sent something wrong.
func cut(err error) error {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE,
		net.ErrClosed} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w (%w)", ErrCut, err)
		}
	}
	return err
}
