package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/simccl/simccl/real/internal/psk"
)

// quick notices soon, but not what a busy machine does by itself.
var quick = Options{Join: 10 * time.Minute, Op: 10 * time.Minute, Ping: 50 * time.Millisecond,
	Silence: 2 * time.Minute}

// world starts a root and n ranks in this process and runs f on each.
func world(t *testing.T, n int, opt Options, f func(c *Group) error) []error {
	t.Helper()
	secret, err := NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	root, err := NewRoot("127.0.0.1:0", n, secret, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, err := Join(context.Background(), root.ID(), r, n, opt)
			if err != nil {
				errs[r] = err
				return
			}
			errs[r] = f(c)
			c.Close()
		}()
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Minute):
		t.Fatal("ranks hang")
	}
	return errs
}

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestRanksGatherMessageAndMeet(t *testing.T) {
	sizes := []int{1, 2, 3, 8, 33}
	if testing.Short() { // 33 ranks make 1,100 handshakes, which the race detector slows down tenfold
		sizes = sizes[:4]
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			noErrors(t, world(t, n, quick, func(c *Group) error {
				for round := range 3 {
					mine := bytes.Repeat([]byte{byte(c.Rank())}, c.Rank()*1000+round)
					all, err := c.AllGather(mine)
					if err != nil {
						return err
					}
					for i, b := range all {
						if !bytes.Equal(b, bytes.Repeat([]byte{byte(i)}, i*1000+round)) {
							return fmt.Errorf("round %d: blob of rank %d is wrong", round, i)
						}
					}
				}
				return exchange(c)
			}))
		})
	}
}

// TestManyRanksMeet: 128 ranks of one process join, gather and meet, each step
// within its limit. The time is logged: on a machine that does much else it says
// little.
func TestManyRanksMeet(t *testing.T) {
	n := 128
	if testing.Short() {
		n = 32
	}
	began := time.Now()
	var joined atomic.Int64
	noErrors(t, world(t, n, quick, func(c *Group) error {
		joined.Store(int64(time.Since(began)))
		all, err := c.AllGather([]byte{byte(c.Rank())})
		if err != nil {
			return err
		}
		for i, b := range all {
			if len(b) != 1 || b[0] != byte(i) {
				return fmt.Errorf("blob of rank %d is %v", i, b)
			}
		}
		if err := c.Send((c.Rank()+n/2)%n, 1, []byte{1}); err != nil {
			return err
		}
		if _, err := c.Recv((c.Rank()+n/2)%n, 1); err != nil {
			return err
		}
		return c.Barrier()
	}))
	d := time.Since(began)
	t.Logf("%d ranks joined after %v and were done after %v", n,
		time.Duration(joined.Load()).Round(time.Millisecond), d.Round(time.Millisecond))
}

// exchange sends to every rank under two tags and receives in the other order.
func exchange(c *Group) error {
	for p := range c.Size() {
		for tag := range uint32(2) {
			if err := c.Send(p, tag, []byte(fmt.Sprintf("%d>%d #%d", c.Rank(), p, tag))); err != nil {
				return err
			}
		}
	}
	for p := c.Size() - 1; p >= 0; p-- {
		for _, tag := range []uint32{1, 0} {
			m, err := c.Recv(p, tag)
			if err != nil {
				return err
			}
			if want := fmt.Sprintf("%d>%d #%d", p, c.Rank(), tag); string(m) != want {
				return fmt.Errorf("got %q, want %q", m, want)
			}
		}
	}
	return c.Barrier()
}

func TestLargeBlobsDoNotDeadlockTheRing(t *testing.T) {
	const size = 2 << 20
	noErrors(t, world(t, 3, quick, func(c *Group) error {
		// Else a machine's buffers may hold it.
		err := errors.Join(tcp(c.next).SetWriteBuffer(64<<10), tcp(c.prev).SetReadBuffer(64<<10))
		if err != nil {
			return err
		}
		all, err := c.AllGather(make([]byte, size))
		if err == nil && len(all[2]) != size {
			err = fmt.Errorf("blob of %d bytes", len(all[2]))
		}
		return err
	}))
}

// tcp is the connection below a channel.
func tcp(c net.Conn) *net.TCPConn { return c.(*psk.Conn).NetConn().(*net.TCPConn) }

func TestBarrierWaitsForTheLast(t *testing.T) {
	var last time.Time
	var mu sync.Mutex
	noErrors(t, world(t, 4, quick, func(c *Group) error {
		if c.Rank() == 2 {
			time.Sleep(200 * time.Millisecond)
			mu.Lock()
			last = time.Now()
			mu.Unlock()
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if last.IsZero() {
			return errors.New("passed the barrier before rank 2 came")
		}
		return nil
	}))
}

func TestStrangersAreRefused(t *testing.T) {
	secret, _ := NewSecret()
	root, err := NewRoot("127.0.0.1:0", 1, secret, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	id := root.ID()
	id.Secret[3] ^= 1
	if _, err := Join(context.Background(), id, 0, 1, quick); !errors.Is(err, ErrRefused) {
		t.Errorf("wrong secret: got %v, want ErrRefused", err)
	}
	// A port scanner that says anything else is cut off and stops no rank.
	c, err := net.Dial("tcp", root.ID().Addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n                    ")
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, _ := c.Read(make([]byte, 100)); n != 0 {
		t.Errorf("the root answered a stranger with %d bytes", n)
	}
	comm, err := Join(context.Background(), root.ID(), 0, 1, quick)
	if err != nil {
		t.Fatalf("the right rank after strangers: %v", err)
	}
	comm.Close()
}

// Connections that say nothing, more than a listener keeps and in a storm while the ranks join, end no
// job: a rank whose handshake is cut by them dials again.
func TestSilentStrangersEndNoJob(t *testing.T) {
	const ranks, strangers = 4, 600
	secret, _ := NewSecret()
	root, err := NewRoot("127.0.0.1:0", ranks, secret, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var all sync.WaitGroup
	for r := range ranks {
		all.Go(func() {
			c, err := Join(context.Background(), root.ID(), r, ranks, quick)
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
				return
			}
			if err := c.Barrier(); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
			c.Close()
		})
	}
	for range strangers {
		if c, err := net.Dial("tcp", root.ID().Addr); err == nil {
			defer c.Close()
		}
	}
	all.Wait()
}

func TestMissingRanksAreNamed(t *testing.T) {
	secret, _ := NewSecret()
	opt := quick
	opt.Join = 5 * time.Second // enough for two ranks to report
	root, err := NewRoot("127.0.0.1:0", 4, secret, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	errs := make(chan error, 2)
	for _, r := range []int{0, 2} {
		go func() {
			_, err := Join(context.Background(), root.ID(), r, 4, opt)
			errs <- err
		}()
	}
	for range 2 {
		err := <-errs
		var late *TimeoutError
		if !errors.As(err, &late) || fmt.Sprint(late.Ranks) != "[1 3]" || !strings.Contains(err.Error(),
			"waiting for rank 1, 3") {
			t.Errorf("got %v, want a TimeoutError that names the missing ranks 1, 3", err)
		}
	}
}

func TestWrongRankOrSizeIsRefusedWithWords(t *testing.T) {
	secret, _ := NewSecret()
	root, err := NewRoot("127.0.0.1:0", 2, secret, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var mismatch *MismatchError
	if _, err := Join(context.Background(), root.ID(), 0, 3, quick); !errors.As(err, &mismatch) ||
		!strings.Contains(err.Error(), "expects 3 ranks, the root 2") {
		t.Errorf("size: %v", err)
	}
	twice := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := Join(context.Background(), root.ID(), 1, 2, quick)
			twice <- err
		}()
	}
	if err := <-twice; !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "reported twice") {
		t.Errorf("twice: %v", err)
	}
	c, err := Join(context.Background(), root.ID(), 0, 2, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := <-twice; err != nil {
		t.Error(err)
	}
}

// vanish cuts a rank off as a killed process would: no goodbye message.
func (c *Group) vanish() {
	c.ln.Close()
	c.ended.Do(func() { close(c.stop) })
	c.conns.closeAll()
}

func TestADeadRankIsNamedByAllOthers(t *testing.T) {
	for _, waitIn := range []string{"all-gather", "receive"} {
		t.Run(waitIn, func(t *testing.T) {
			began := time.Now()
			errs := world(t, 6, quick, func(c *Group) error {
				if c.Rank() == 4 {
					c.vanish()
					return nil
				}
				if waitIn == "receive" {
					_, err := c.Recv((c.Rank()+1)%6, 7)
					return err
				}
				for {
					if _, err := c.AllGather(nil); err != nil {
						return err
					}
				}
			})
			for r, err := range errs {
				var dead *DeadError
				if r != 4 && (!errors.As(err, &dead) || dead.Rank != 4) {
					t.Errorf("rank %d says %v, want rank 4 named dead", r, err)
				}
			}
			if d := time.Since(began); d > quick.Silence {
				t.Errorf("it took %v to notice", d)
			}
		})
	}
}

func TestASilentRankIsNamed(t *testing.T) {
	opt := quick
	opt.Silence = 5 * time.Second
	errs := world(t, 3, opt, func(c *Group) error {
		if c.Rank() == 1 { // hangs: connections stay open, no signs of life
			c.ended.Do(func() { close(c.stop) })
			<-c.Failed()
			return nil
		}
		_, err := c.AllGather(nil)
		return err
	})
	for _, r := range []int{0, 2} {
		var dead *DeadError
		if !errors.As(errs[r], &dead) || dead.Rank != 1 || !strings.Contains(dead.Reason, "no sign of life") {
			t.Errorf("rank %d says %v", r, errs[r])
		}
	}
}

func TestAbortReachesAllWithItsReason(t *testing.T) {
	errs := world(t, 4, quick, func(c *Group) error {
		if c.Rank() == 3 {
			c.Abort(errors.New("QP 17 to rank 0 in error"))
			return nil
		}
		_, err := c.Recv(3, 0)
		return err
	})
	for r, err := range errs[:3] {
		var ab *AbortError
		if !errors.As(err, &ab) || ab.Rank != 3 || !strings.Contains(ab.Reason, "QP 17") {
			t.Errorf("rank %d says %v", r, err)
		}
	}
}

// Several goroutines may find at once that a rank has to give up.
func TestAbortsAndClosesMayComeTogether(t *testing.T) {
	why := errors.New("given up")
	world(t, 3, quick, func(c *Group) error {
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				<-begin
				if i%8 == 7 {
					c.Close()
				} else {
					c.Abort(why)
				}
			})
		}
		close(begin)
		wg.Wait()
		return nil
	})
}

func TestReceiveFromARankThatLeft(t *testing.T) {
	errs := world(t, 2, quick, func(c *Group) error {
		if c.Rank() == 1 {
			return c.Send(0, 5, []byte("last words"))
		}
		m, err := c.Recv(1, 5)
		if err != nil || string(m) != "last words" {
			return fmt.Errorf("last message: %q %w", m, err)
		}
		_, err = c.Recv(1, 6)
		var left *LeftError
		if !errors.As(err, &left) {
			return fmt.Errorf("got %v, want LeftError", err)
		}
		return nil
	})
	noErrors(t, errs)
}

func TestReceiveTimesOut(t *testing.T) {
	opt := quick
	opt.Op = 200 * time.Millisecond
	over := make(chan struct{})
	errs := world(t, 2, opt, func(c *Group) error {
		if c.Rank() == 1 {
			<-over
			return nil
		}
		defer close(over)
		_, err := c.Recv(1, 5)
		var to *TimeoutError
		if !errors.As(err, &to) {
			return fmt.Errorf("got %v, want TimeoutError", err)
		}
		return nil
	})
	noErrors(t, errs)
}

// TestKilledProcess kills a real process with SIGKILL and asks the survivors.
func TestKilledProcess(t *testing.T) {
	if spec := os.Getenv("BOOTSTRAP_TEST_RANK"); spec != "" {
		childRank(t, spec)
		return
	}
	secret, _ := NewSecret()
	root, err := NewRoot("127.0.0.1:0", 3, secret, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	child := exec.Command(os.Args[0], "-test.run", "^TestKilledProcess$")
	child.Env = append(os.Environ(), "BOOTSTRAP_TEST_RANK=1 3 "+root.ID().String())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 2)
	var joined sync.WaitGroup
	joined.Add(2)
	for _, r := range []int{0, 2} {
		go func() {
			c, err := Join(context.Background(), root.ID(), r, 3, quick)
			joined.Done()
			if err == nil {
				if r == 0 {
					joined.Wait()
					child.Process.Kill()
					child.Wait()
				}
				_, err = c.Recv(1, 1)
			}
			errs <- err
		}()
	}
	for range 2 {
		err := <-errs
		var dead *DeadError
		if !errors.As(err, &dead) || dead.Rank != 1 {
			t.Errorf("survivor says %v", err)
		}
	}
}

func childRank(t *testing.T, spec string) {
	f := strings.Fields(spec)
	rank, _ := strconv.Atoi(f[0])
	n, _ := strconv.Atoi(f[1])
	id, err := ParseID(f[2])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Join(context.Background(), id, rank, n, quick); err != nil {
		t.Fatal(err)
	}
	select {}
}

func TestIDText(t *testing.T) {
	secret, _ := NewSecret()
	id := ID{Addr: "[fe80::1%eth0]:4711", Secret: secret}
	got, err := ParseID(id.String())
	if err != nil || got != id {
		t.Errorf("round trip gave %v, %v", got, err)
	}
	for _, bad := range []string{"", "simccl1/x/00", "simccl2/1.2.3.4:5/00112233445566778899aabbccddeeff",
		"simccl1/1.2.3.4:5/0011"} {
		if _, err := ParseID(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// FuzzFrame: any bytes are a frame that survives being written, or an error.
func FuzzFrame(f *testing.F) {
	var b bytes.Buffer
	_ = writeFrame(&b, frame{frData, 3, []byte("abc")})
	f.Add(b.Bytes())
	f.Add([]byte{1, 0, 0, 0, 0, 255, 255, 255, 63})
	f.Fuzz(func(t *testing.T, data []byte) {
		fr, err := readFrame(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeFrame(&out, fr); err != nil || !bytes.HasPrefix(data, out.Bytes()) {
			t.Errorf("frame does not survive: %v", err)
		}
	})
}
