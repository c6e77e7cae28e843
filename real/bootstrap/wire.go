package bootstrap

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// frameKind tells what a frame is for.
type frameKind uint8

const (
	frReport    frameKind = iota + 1 // rank → root: listen address
	frSuccessor                      // root → rank: successor's address
	frPing
	frBye   // rank → root: leaving in order
	frAbort // rank → root: giving up, payload is the reason
	frDead  // root → rank: tag is the rank, payload the reason
	frLeft  // root → rank: tag is the rank
	frGone  // root → rank: tag is the rank that aborted, payload the reason
	frRefuse
	frData // message by tag
	frRing // ring gather step, tag is the sequence
)

// frame is one message on a connection.
type frame struct {
	kind    frameKind
	tag     uint32
	payload []byte
}

// maxPayload bounds what a peer can make us allocate.
const maxPayload = 1 << 30

const frameHeader = 9

func writeFrame(w io.Writer, f frame) error {
	if len(f.payload) > maxPayload {
		return fmt.Errorf("message of %d bytes is over the limit of %d", len(f.payload), maxPayload)
	}
	buf := make([]byte, frameHeader, frameHeader+len(f.payload))
	buf[0] = byte(f.kind)
	binary.LittleEndian.PutUint32(buf[1:], f.tag)
	binary.LittleEndian.PutUint32(buf[5:], uint32(len(f.payload)))
	_, err := w.Write(append(buf, f.payload...))
	return err
}

func readFrame(r io.Reader) (frame, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	n := binary.LittleEndian.Uint32(h[5:])
	if n > maxPayload {
		return frame{}, fmt.Errorf("message of %d bytes is over the limit of %d", n, maxPayload)
	}
	f := frame{kind: frameKind(h[0]), tag: binary.LittleEndian.Uint32(h[1:])}
	// Grow as bytes arrive, so that a lying header cannot make us allocate.
	lr := &io.LimitedReader{R: r, N: int64(n)}
	buf := make([]byte, 0, min(int(n), 64<<10))
	for lr.N > 0 {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		m, err := lr.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+m]
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return frame{}, err
		}
	}
	f.payload = buf
	return f, nil
}

// role tells the acceptor what a connection is for.
type role uint8

const (
	roleControl role = iota + 1 // rank ↔ root
	roleRing                    // predecessor → successor
	rolePeer                    // messages by tag
)

// greeting opens every connection.
type greeting struct {
	role   role
	rank   uint32
	nRanks uint32
}

const (
	magic         = "SCB1"
	nonceSize     = 16
	greetingSize  = 4 + 1 + 4 + 4 + nonceSize
	handshakeTime = 5 * time.Second
)

func proof(secret [secretSize]byte, side string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, secret[:])
	m.Write([]byte(side))
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// greet runs the dialer's half of the handshake: both sides prove the secret
// over both nonces without showing it.
func greet(c net.Conn, secret [secretSize]byte, g greeting) error {
	defer c.SetDeadline(time.Time{})
	c.SetDeadline(time.Now().Add(handshakeTime))
	hello := make([]byte, greetingSize)
	copy(hello, magic)
	hello[4] = byte(g.role)
	binary.LittleEndian.PutUint32(hello[5:], g.rank)
	binary.LittleEndian.PutUint32(hello[9:], g.nRanks)
	if _, err := rand.Read(hello[13:]); err != nil {
		return err
	}
	if _, err := c.Write(hello); err != nil {
		return err
	}
	answer := make([]byte, nonceSize+sha256.Size)
	if _, err := io.ReadFull(c, answer); err != nil {
		return fmt.Errorf("%w (%v)", ErrRefused, err)
	}
	nonce := answer[:nonceSize]
	if !hmac.Equal(answer[nonceSize:], proof(secret, "accept", hello, nonce)) {
		return ErrRefused
	}
	_, err := c.Write(proof(secret, "dial", nonce, hello))
	return err
}

// welcome runs the acceptor's half. A stranger learns nothing but that the
// connection closes.
func welcome(c net.Conn, secret [secretSize]byte) (greeting, error) {
	defer c.SetDeadline(time.Time{})
	c.SetDeadline(time.Now().Add(handshakeTime))
	hello := make([]byte, greetingSize)
	if _, err := io.ReadFull(c, hello); err != nil {
		return greeting{}, err
	}
	if string(hello[:4]) != magic {
		return greeting{}, ErrRefused
	}
	nonce := make([]byte, nonceSize)
	if _, err := rand.Read(nonce); err != nil {
		return greeting{}, err
	}
	if _, err := c.Write(append(nonce, proof(secret, "accept", hello, nonce)...)); err != nil {
		return greeting{}, err
	}
	got := make([]byte, sha256.Size)
	if _, err := io.ReadFull(c, got); err != nil {
		return greeting{}, err
	}
	if !hmac.Equal(got, proof(secret, "dial", nonce, hello)) {
		return greeting{}, ErrRefused
	}
	return greeting{
		role:   role(hello[4]),
		rank:   binary.LittleEndian.Uint32(hello[5:]),
		nRanks: binary.LittleEndian.Uint32(hello[9:]),
	}, nil
}
