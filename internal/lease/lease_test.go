//go:build !windows

package lease_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/pgtest"
)

// childEnv makes this program the other server of a test. It is the address of the record.
const childEnv = "GOZZARD_TEST_LEASE_CHILD"

// ttl is short, so that a test does not wait long. Leases that are lost because the machine is slow are gained again.
const ttl = 500 * time.Millisecond

func TestMain(m *testing.M) {
	if address := os.Getenv(childEnv); address != "" {
		beChild(address)
		return
	}
	os.Exit(m.Run())
}

func open(t *testing.T, dsn string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.OpenPostgres(t.Context(), dsn, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// server is a server of a test with one piece of work.
type server struct {
	*lease.Keeper
	begun chan context.Context // has the context of the work each time that it begins
	stop  func()               // ends it and waits
}

func start(t *testing.T, store *sqlstore.Store, id string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{Keeper: lease.New(lease.Options{Store: store, Holder: id, TTL: ttl}), begun: make(chan context.Context, 100)}

	// Begin.
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() {
		ended <- s.Do(ctx, "work", func(ctx context.Context) error {
			s.begun <- ctx
			<-ctx.Done()
			return nil
		})
	}()

	// End once, when the test says so or at its end.
	s.stop = sync.OnceFunc(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(s.stop)
	return s
}

// next waits until the work of a server begins, and returns its context and fence.
func (s *server) next(t *testing.T) (context.Context, int64) {
	t.Helper()
	select {
	case ctx := <-s.begun:
		f, ok := lease.FenceOf(ctx)
		if !ok {
			t.Fatal("the work has no fence")
		}
		return ctx, f.Number
	case <-time.After(time.Minute):
		t.Fatal("the work did not begin within a minute")
		return nil, 0
	}
}

// TestAlone: a server that is alone has every lease, and its work no fence.
func TestAlone(t *testing.T) {
	var k *lease.Keeper
	failed := errors.New("failed")
	err := k.Do(t.Context(), "work", func(ctx context.Context) error {
		if _, fenced := lease.FenceOf(ctx); fenced || ctx != t.Context() {
			t.Error("the work of a server that is alone has a fence")
		}
		return errors.Join(failed, lease.Check(ctx))
	})
	if !errors.Is(err, failed) || errors.Is(err, lease.ErrLost) {
		t.Errorf("got %v", err)
	}
}

// TestOneOfTwo: one server does the work. When it ends, the other one does, with a larger number.
func TestOneOfTwo(t *testing.T) {
	dsn := pgtest.Start(t, "off").DSN()
	stores := []*sqlstore.Store{open(t, dsn), open(t, dsn)}
	servers := []*server{start(t, stores[0], "a"), start(t, stores[1], "b")}
	holds := func(s *server) bool { return slices.Contains(s.Held(), "work") }

	// One of them has it.
	deadline := time.Now().Add(time.Minute)
	for !holds(servers[0]) && !holds(servers[1]) {
		if time.Now().After(deadline) {
			t.Fatal("no server holds the lease")
		}
		time.Sleep(time.Millisecond)
	}
	if holds(servers[1]) {
		servers[0], servers[1] = servers[1], servers[0]
	}
	_, first := servers[0].next(t)

	// It is released when that server ends.
	servers[0].stop()
	ctx, second := servers[1].next(t)
	if second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
	if err := lease.Check(ctx); err != nil && ctx.Err() == nil {
		t.Errorf("the holder may not act: %v", err)
	}

	// The other one ends too: nobody has it.
	servers[1].stop()
	list, err := stores[0].Leases(t.Context())
	if err != nil || len(list) != 1 || list[0].Holder != "" || list[0].Left > 0 {
		t.Errorf("got %+v, %v", list, err)
	}
	if len(servers[1].Held()) > 0 || !errors.Is(lease.Check(ctx), lease.ErrLost) {
		t.Error("a server that has ended holds a lease")
	}
}

// TestRest: a server that rests gives its lease to another one at once, after its work has ended, and takes none until it does
// not rest any more.
func TestRest(t *testing.T) {
	dsn := pgtest.Start(t, "off").DSN()
	a := start(t, open(t, dsn), "a")
	work, first := a.next(t)
	b := start(t, open(t, dsn), "b")
	a.Rest(true)
	<-work.Done()
	_, second := b.next(t)
	if second <= first {
		t.Errorf("the fence is %d after %d", second, first)
	}

	// Nobody has it while both rest.
	b.Rest(true)
	deadline := time.Now().Add(time.Minute)
	for len(b.Held()) > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(3 * ttl)
	if x, y := a.Held(), b.Held(); len(x)+len(y) > 0 {
		t.Errorf("a server that rests holds %v, %v", x, y)
	}
	a.Rest(false)
	if _, third := a.next(t); third <= second {
		t.Errorf("the fence is %d after %d", third, second)
	}
}

// TestRecordAway: without the record a server stops its work by its own clock, and begins again with a new number.
func TestRecordAway(t *testing.T) {
	pg := pgtest.Start(t, "off")
	s := start(t, open(t, pg.DSN()), "a")
	ctx, first := s.next(t)

	pg.End(syscall.SIGQUIT)
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("the work goes on without the record")
	}
	if !errors.Is(context.Cause(ctx), lease.ErrLost) || !errors.Is(lease.Check(ctx), lease.ErrLost) {
		t.Errorf("the work ended with %v", context.Cause(ctx))
	}

	pg.Again()
	if _, second := s.next(t); second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
}

// beChild is a server whose work writes the number of its fence again and again, and does not care whether its context has
// ended: only the record can stop it.
func beChild(address string) {
	ctx := context.Background()
	s, err := sqlstore.OpenPostgres(ctx, address, sqlstore.Options{})
	if err != nil {
		fmt.Println("fault", err)
		return
	}
	k := lease.New(lease.Options{Store: s, Holder: "child", TTL: ttl, Log: slog.New(slog.DiscardHandler)})
	go func() {
		if err := k.Run(ctx); err != nil {
			fmt.Println("fault", err)
		}
	}()

	err = k.Do(ctx, "work", func(ctx context.Context) error {
		f, _ := lease.FenceOf(ctx)
		for {
			err := s.SaveExportPosition(context.WithoutCancel(ctx), "x", gozzard.AuditHead{Seq: f.Number}, time.Now())
			switch {
			case err == nil:
				fmt.Println("wrote", f.Number)
			case errors.Is(err, lease.ErrLost):
				fmt.Println("late", f.Number, lease.Check(ctx) != nil)
				return err
			case gozzard.KindOf(err) == gozzard.ErrUnavailable: // the database ended the session of the frozen server
			default:
				fmt.Println("fault", err)
			}
		}
	})
	fmt.Println("fault", err)
}

// TestFrozen: a server is frozen in the middle of its work, another one takes it over, and the first one wakes up and goes
// on with what it believed. Its writes have no effect: the database looks at every one.
func TestFrozen(t *testing.T) {
	pg := pgtest.Start(t, "off")
	// Sessions that are frozen in a transaction end, as those of servers do.
	address := pg.DSN() + " idle_in_transaction_session_timeout=300"
	store := open(t, address)
	pg.Exec("postgres", `
		CREATE FUNCTION rises() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.seq < OLD.seq THEN RAISE 'a late write: % after %', NEW.seq, OLD.seq; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER rises BEFORE UPDATE ON audit_exports FOR EACH ROW EXECUTE FUNCTION rises();`)
	child, lines := startChild(t, address)

	for range 5 {
		// Freeze the other server while it works.
		number := expect(t, lines, "wrote")
		signal(t, child, syscall.SIGSTOP)

		// Take over.
		me := start(t, store, "me")
		ctx, mine := me.next(t)
		if mine <= number {
			t.Errorf("fence %d after %d", mine, number)
		}
		err := store.SaveExportPosition(ctx, "x", gozzard.AuditHead{Seq: mine}, time.Now())
		if err != nil && !errors.Is(err, lease.ErrLost) { // this machine may be slow
			t.Fatal(err)
		}

		// It wakes up, and must not write.
		signal(t, child, syscall.SIGCONT)
		if late := expect(t, lines, "late"); late >= mine {
			t.Errorf("fence %d was late, this server has %d", late, mine)
		}
		me.stop()
	}
}

// startChild starts the other server. lines are what it prints.
func startChild(t *testing.T, address string) (p *os.Process, lines <-chan string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childEnv+"="+address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	read := make(chan string, 1000)
	go copyLines(out, read)
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		for range read {
		}
		_ = cmd.Wait() // it was killed
	})
	return cmd.Process, read
}

func copyLines(from io.Reader, to chan<- string) {
	defer close(to)
	for in := bufio.NewScanner(from); in.Scan(); {
		to <- in.Text()
	}
}

func signal(t *testing.T, p *os.Process, sig syscall.Signal) {
	t.Helper()
	if err := p.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// expect reads lines up to one with a word, and returns its number.
func expect(t *testing.T, lines <-chan string, word string) (number int64) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case line, ok := <-lines:
			if !ok || strings.HasPrefix(line, "fault") {
				t.Fatalf("the other server: %q", line)
			}
			if strings.HasPrefix(line, "late") && strings.HasSuffix(line, "false") {
				t.Errorf("the other server: %q: an effect outside the record would not have been stopped", line)
			}
			if _, err := fmt.Sscanf(line, word+" %d", &number); err == nil {
				return number
			}
		case <-deadline:
			t.Fatalf("the other server did not say %q within a minute", word)
		}
	}
}
