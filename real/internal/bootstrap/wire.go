package bootstrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/simccl/simccl/real/internal/psk"
)

type frameKind uint8

const (
	frReport    frameKind = iota + 1 // rank → root: listen address
	frSuccessor                      // root → rank: successor's address
	frPing
	frBye     // rank → root: leaving in order
	frAbort   // rank → root: giving up, payload is a verdict
	frLeft    // root → rank: tag is the rank
	frVerdict // root → rank: why the communicator failed, payload is a verdict
	frData    // message by tag
	frRing    // ring gather step, tag is the sequence
)

// frame is one message on a connection.
type frame struct {
	kind    frameKind
	tag     uint32
	payload []byte
}

// maxPayload bounds the memory that a peer can make this process allocate.
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
	// Grow as bytes arrive, so that a false header cannot make this process allocate.
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

// role is the purpose of a connection, sent to the acceptor.
type role uint8

const (
	roleControl role = iota + 1 // rank ↔ root
	roleRing                    // predecessor → successor
	rolePeer                    // messages by tag
)

// greeting opens every connection; the handshake authenticates it.
type greeting struct {
	role   role
	rank   uint32
	nRanks uint32
}

const greetingSize = 1 + 4 + 4

func (g greeting) bytes() []byte {
	b := []byte{byte(g.role)}
	b = binary.LittleEndian.AppendUint32(b, g.rank)
	return binary.LittleEndian.AppendUint32(b, g.nRanks)
}

// errGreeting reports a peer that knows the secret but sends no rank's greeting.
var errGreeting = errors.New("the peer's greeting is not that of a rank")

// greet runs the dialer's side of the handshake.
func greet(c net.Conn, secret [secretSize]byte, g greeting) (net.Conn, error) {
	_ = c.SetDeadline(time.Now().Add(psk.HandshakeTime))
	defer c.SetDeadline(time.Time{})
	return psk.Dial(c, secret[:], g.bytes())
}

// welcome runs the acceptor's side of the handshake. An unknown peer learns nothing about the secret except
// whether its one guess is right.
func welcome(c net.Conn, gate *psk.Gate, known func()) (net.Conn, greeting, error) {
	_ = c.SetDeadline(time.Now().Add(psk.HandshakeTime))
	defer c.SetDeadline(time.Time{})
	safe, hello, err := gate.Admit(c, known)
	switch {
	case err != nil:
		return nil, greeting{}, err
	case len(hello) != greetingSize:
		return nil, greeting{}, errGreeting
	}
	return safe, greeting{role: role(hello[0]), rank: binary.LittleEndian.Uint32(hello[1:]),
		nRanks: binary.LittleEndian.Uint32(hello[5:])}, nil
}
