package psk

import (
	"bytes"
	"crypto/hmac"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// wire is a pair of connected sockets.
func wire(t testing.TB) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

type admitted struct {
	conn  *Conn
	hello []byte
	err   error
}

// serve has a gate admit a connection, and close it where it does not.
func serve(g *Gate, c net.Conn) chan admitted {
	out := make(chan admitted, 1)
	go func() {
		safe, hello, err := g.Admit(c, func() {})
		if err != nil {
			c.Close()
		}
		out <- admitted{safe, hello, err}
	}()
	return out
}

// TestSameSecretMeets: hello and data come through, both ways, and nothing of
// them is sent on the wire.
func TestSameSecretMeets(t *testing.T) {
	a, b := wire(t)
	tap := &recorder{Conn: b}
	done := serve(NewGate([]byte("secret")), tap)
	near, err := Dial(a, []byte("secret"), []byte("rank 1"))
	if err != nil {
		t.Fatal(err)
	}
	far := <-done
	if far.err != nil || string(far.hello) != "rank 1" {
		t.Fatalf("hello %q: %v", far.hello, far.err)
	}
	for _, ends := range [][2]*Conn{{near, far.conn}, {far.conn, near}} {
		if _, err := ends[0].Write([]byte("a message in clear")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 18)
		if _, err := io.ReadFull(ends[1], got); err != nil || string(got) != "a message in clear" {
			t.Fatalf("%q: %v", got, err)
		}
	}
	for _, clear := range []string{"rank 1", "in clear", "secret"} {
		if bytes.Contains(tap.out(), []byte(clear)) || bytes.Contains(tap.in(), []byte(clear)) {
			t.Errorf("%q is sent on the wire", clear)
		}
	}
}

// TestOtherSecretIsRefused: both sides say so, and the gate counts it.
func TestOtherSecretIsRefused(t *testing.T) {
	a, b := wire(t)
	g := NewGate([]byte("secret"))
	done := serve(g, b)
	if _, err := Dial(a, []byte("another"), nil); !errors.Is(err, ErrRefused) {
		t.Errorf("dialer: %v", err)
	}
	if far := <-done; !errors.Is(far.err, ErrRefused) {
		t.Errorf("acceptor: %v", far.err)
	}
	if g.Refused() != 1 {
		t.Errorf("%d refused", g.Refused())
	}
}

// recorder keeps what goes over a connection.
type recorder struct {
	net.Conn
	mu        sync.Mutex
	sent, got bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.sent.Write(b)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.mu.Lock()
	r.got.Write(b[:n])
	r.mu.Unlock()
	return n, err
}

func (r *recorder) out() []byte { r.mu.Lock(); defer r.mu.Unlock(); return r.sent.Bytes() }
func (r *recorder) in() []byte  { r.mu.Lock(); defer r.mu.Unlock(); return r.got.Bytes() }

// guess plays an unknown peer that has one guess at the acceptor's secret, and returns
// all that the acceptor says inside TLS.
func guess(t *testing.T, secret, word []byte) (said []byte) {
	t.Helper()
	a, b := wire(t)
	done := serve(NewGate(secret), b)
	c := tls.Client(a, &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		InsecureSkipVerify: true})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	session, err := binding(c)
	if err != nil {
		t.Fatal(err)
	}
	y := newScalar()
	x := &transcript{session: session, ya: shareOf(y, generator(word, channel, session)),
		yb: make([]byte, shareSize)}
	if _, err := c.Write(append([]byte{0}, x.ya...)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, x.yb); err != nil {
		t.Fatal(err)
	}
	k, err := meet(y, x.yb)
	if err != nil {
		t.Fatal(err)
	}
	x.derive(k)
	if _, err := c.Write(x.tag(x.ya, x.ada)); err != nil {
		t.Fatal(err)
	}
	<-done
	b.Close() // also where it was admitted
	rest, _ := io.ReadAll(c)
	return append(x.yb, rest...)
}

// TestAStrangerLearnsOnlyThatHisGuessIsWrong: inside TLS the acceptor says one
// group element, which hides the secret (TestSharesHideTheSecret), and one byte
// that is the same for every secret. No MAC is among it, so that the transcript
// fits every word of a dictionary. With the right guess there is one.
func TestAStrangerLearnsOnlyThatHisGuessIsWrong(t *testing.T) {
	for _, secret := range []string{"hunter2", "letmein"} {
		said := guess(t, []byte(secret), []byte("password"))
		if len(said) != shareSize+1 || said[shareSize] != wrong {
			t.Fatalf("secret %s: the acceptor says %d bytes to a stranger: %x", secret, len(said), said)
		}
		if said = guess(t, []byte(secret), []byte(secret)); len(said) != shareSize+1+tagSize {
			t.Errorf("secret %s: the acceptor says %d bytes to a rank", secret, len(said))
		}
	}
}

// TestTheOldOracle: shared/attack's oracle opened a connection with the former
// handshake's greeting and got a MAC of it by the secret. To that greeting, as to
// any that is not TLS's, acceptors of all secrets now answer in the same way.
func TestTheOldOracle(t *testing.T) {
	hello := make([]byte, 29)
	copy(hello, "SCB1")
	hello[4] = 1
	binary.LittleEndian.PutUint32(hello[5:], 1)
	binary.LittleEndian.PutUint32(hello[9:], 2)
	for _, words := range [][]byte{hello, []byte("GET / HTTP/1.1\r\nHost: a host of ours\r\n\r\n"),
		bytes.Repeat([]byte{0}, 64)} {
		var answers [2][]byte
		for i, secret := range []string{"hunter2", "another"} {
			a, b := wire(t)
			done := serve(NewGate([]byte(secret)), b)
			if _, err := a.Write(words); err != nil {
				t.Fatal(err)
			}
			answers[i], _ = io.ReadAll(a) // until it is closed
			if far := <-done; far.err == nil {
				t.Fatalf("%q is admitted", words)
			}
		}
		if !bytes.Equal(answers[0], answers[1]) {
			t.Errorf("%.8q is answered by %x and %x: it depends on the secret", words, answers[0], answers[1])
		}
	}
}

// TestASquatterLearnsNothingByTheDialersProof: a listener in the acceptor's
// place gets a share and a MAC that only the guess he made himself explains.
func TestASquatterLearnsNothingByTheDialersProof(t *testing.T) {
	a, b := wire(t)
	done := make(chan bool, 1)
	go func() { // the squatter guesses "password" and tries others on the proof afterwards
		cert, _ := certificate()
		c := tls.Server(b, &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
			Certificates: []tls.Certificate{cert}})
		defer b.Close()
		first := make([]byte, 1+shareSize)
		proof := make([]byte, tagSize)
		if c.Handshake() != nil {
			return
		}
		session, _ := binding(c)
		if _, err := io.ReadFull(c, first); err != nil {
			return
		}
		y := newScalar()
		x := &transcript{session: session, ya: first[1:],
			yb: shareOf(y, generator([]byte("password"), channel, session))}
		_, _ = c.Write(x.yb)
		if _, err := io.ReadFull(c, proof); err != nil {
			return
		}
		k, _ := meet(y, x.ya)
		x.derive(k)
		found := hmac.Equal(proof, x.tag(x.ya, x.ada))
		// Another word needs the scalar of this share over another generator.
		for _, word := range []string{"hunter2", "letmein"} {
			z := *x
			z.yb = shareOf(y, generator([]byte(word), channel, session))
			if k, err := meet(y, z.ya); err == nil {
				z.derive(k)
				found = found || hmac.Equal(proof, z.tag(z.ya, z.ada))
			}
		}
		done <- found
	}()
	if _, err := Dial(a, []byte("hunter2"), nil); err == nil {
		t.Error("the dialer takes a squatter for the acceptor")
	}
	if <-done {
		t.Error("the squatter finds the secret in the dialer's proof")
	}
}

// TestAManInTheMiddleIsRefused: one who has a TLS session with each end, and
// passes on what they say inside, gets no further, although both ends know the
// secret: their sessions' bindings differ.
func TestAManInTheMiddleIsRefused(t *testing.T) {
	a, middleA := wire(t)
	middleB, b := wire(t)
	done := serve(NewGate([]byte("secret")), b)
	go func() {
		cert, _ := certificate()
		left := tls.Server(middleA, &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
			Certificates: []tls.Certificate{cert}})
		right := tls.Client(middleB, &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
			InsecureSkipVerify: true})
		go func() { _, _ = io.Copy(right, left); middleB.Close() }()
		_, _ = io.Copy(left, right)
		middleA.Close()
	}()
	if _, err := Dial(a, []byte("secret"), nil); err == nil {
		t.Error("the dialer meets the man in the middle")
	}
	if far := <-done; far.err == nil {
		t.Error("the acceptor meets the man in the middle")
	}
}

// TestCutIsTold: a connection that ends early is ErrCut, which may be tried
// again; one where something else answers is not.
func TestCutIsTold(t *testing.T) {
	a, b := wire(t)
	b.Close()
	if _, err := Dial(a, []byte("x"), nil); !errors.Is(err, ErrCut) {
		t.Errorf("closed: %v", err)
	}
	a, b = wire(t)
	go func() { _, _ = b.Write(bytes.Repeat([]byte("no TLS "), 100)) }()
	if _, err := Dial(a, []byte("x"), nil); err == nil || errors.Is(err, ErrCut) ||
		errors.Is(err, ErrRefused) {
		t.Errorf("garbage: %v", err)
	}
	if _, err := Dial(a, nil, make([]byte, MaxHello+1)); err == nil {
		t.Error("a hello that is too long is sent")
	}
}

// FuzzStranger: no bytes, in place of TLS or inside it, get in without the
// secret, and none hang or crash the acceptor.
func FuzzStranger(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), false)
	f.Add(append([]byte{0}, make([]byte, shareSize+tagSize)...), true)
	f.Add(append([]byte{255}, make([]byte, 300)...), true)
	f.Add([]byte{0x16, 3, 1, 0, 1, 1}, false)
	f.Fuzz(func(t *testing.T, says []byte, inside bool) {
		near, far := net.Pipe()
		defer near.Close()
		done := serve(NewGate([]byte("secret")), far)
		c := near
		if inside {
			safe := tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
				InsecureSkipVerify: true})
			if err := safe.Handshake(); err != nil {
				t.Fatal(err)
			}
			c = safe
		}
		go func() { _, _ = io.Copy(io.Discard, c) }()
		_, _ = c.Write(says)
		near.Close()
		if got := <-done; got.err == nil {
			t.Fatalf("%x is admitted with hello %x", says, got.hello)
		}
	})
}

// TestProvenBeforeTold: who gives a connection up at the moment at which it is proven (transport.Serve
// closes the oldest that is not) does so before the dialer counts on it: the dialer sees a handshake that
// was cut, and dials again. A dialer that had the answer would take it for the death of the other side.
func TestProvenBeforeTold(t *testing.T) {
	a, b := wire(t)
	done := make(chan error, 1)
	go func() {
		_, _, err := NewGate([]byte("secret")).Admit(b, func() { b.Close() })
		done <- err
	}()
	if _, err := Dial(a, []byte("secret"), []byte("rank 0")); !errors.Is(err, ErrCut) {
		t.Errorf("the dialer sees %v, not a cut handshake", err)
	}
	if err := <-done; !errors.Is(err, ErrCut) {
		t.Errorf("the acceptor sees %v", err)
	}
}
