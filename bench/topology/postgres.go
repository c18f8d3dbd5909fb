//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// errNoPostgres means that there is no PostgreSQL to start.
var errNoPostgres = errors.New("no PostgreSQL server (initdb, postgres) in /usr/lib/postgresql/*/bin or the path, or no account to run it as")

// settings give the server enough memory for reading: everything that is queried stays in its buffers, no JIT compiler
// starts for a short query, and no vacuum runs in the middle of a measurement.
var settings = []string{
	"listen_addresses=", "effective_cache_size=6GB", "work_mem=64MB", "maintenance_work_mem=512MB",
	"random_page_cost=1.1", "jit=off",
	"autovacuum=off", "plan_cache_mode=force_custom_plan", "max_wal_size=8GB", "max_connections=20",
}

// postgres is a server that the run starts and stops.
type postgres struct {
	dir   string
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
	conn  *pgx.Conn
}

// startPostgres starts a separate server in a new folder, on a Unix socket only.
func startPostgres(ctx context.Context, dir, buffers string) (p *postgres, err error) {
	bin, as, err := findPostgres()
	if err != nil {
		return nil, err
	}

	p = &postgres{dir: filepath.Join(dir, "pg"), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop(ctx))
		}
	}()

	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return p, err
	}
	if as != nil {
		if err := errors.Join(os.Chmod(dir, 0o711), os.Chown(p.dir, int(as.Uid), int(as.Gid))); err != nil {
			return p, err
		}
	}

	data := filepath.Join(p.dir, "data")

	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: as}
		return cmd
	}

	// Sort text by its bytes: this is the fastest order for patterns that begin with text.
	if out, err := command("initdb", "-D", data, "-U", "gozzard", "-A", "trust", "--no-sync", "-E", "UTF8",
		"--locale=C").CombinedOutput(); err != nil {
		return p, fmt.Errorf("initdb: %w\n%s", err, out)
	}

	args := []string{"-D", data, "-k", p.dir, "-c", "shared_buffers=" + buffers}
	for _, s := range settings {
		args = append(args, "-c", s)
	}

	server := command("postgres", args...)
	server.SysProcAttr.Pdeathsig = syscall.SIGQUIT

	if p.log, err = os.Create(filepath.Join(dir, "postgres.log")); err != nil {
		return p, err
	}

	server.Stdout, server.Stderr = p.log, p.log
	if err := server.Start(); err != nil {
		return p, fmt.Errorf("cannot start postgres: %w", err)
	}

	p.cmd = server
	go func() {
		_ = server.Wait() // the exit state is in its log
		close(p.ended)
	}()

	return p, p.connect(ctx)
}

// findPostgres finds the programs, and an account to run them as if this is root: the server refuses to run as root.
func findPostgres() (bin string, as *syscall.Credential, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", nil, err
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", nil, errNoPostgres
	}

	bin = filepath.Dir(found[len(found)-1])

	if os.Geteuid() != 0 {
		return bin, nil, nil
	}

	u, err := user.Lookup("postgres")
	if err != nil {
		return "", nil, errNoPostgres
	}

	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return bin, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

// connect waits until the server answers.
func (p *postgres) connect(ctx context.Context) error {
	address := fmt.Sprintf("host=%s user=gozzard dbname=postgres sslmode=disable", p.dir)
	for deadline := time.Now().Add(time.Minute); ; {
		var err error
		if p.conn, err = pgx.Connect(ctx, address); err == nil {
			return nil
		}
		select {
		case <-p.ended:
			text, _ := os.ReadFile(p.log.Name()) // an empty log is as good as none
			return fmt.Errorf("postgres ended: %s", text)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// stop stops the server and waits for it.
func (p *postgres) stop(ctx context.Context) error {
	var errs []error

	if p.conn != nil {
		errs = append(errs, p.conn.Close(context.WithoutCancel(ctx)))
	}

	if p.cmd != nil {
		if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
		<-p.ended
	}

	if p.log != nil {
		errs = append(errs, p.log.Close())
	}

	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}
