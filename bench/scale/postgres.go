//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gozzard/gozzard/test/pgtest"
)

const database = "fleet"

// postgres is the PostgreSQL of the run, with every commit on the disk.
type postgres struct {
	*pgtest.Server
	conn    *pgx.Conn // of the benchmark
	version string
	first   int // process id of its first process

	ends []func()
}

// failure is what pgtest reports to a test.
type failure string

// Helper, Cleanup, Error, Fatal, Fatalf and Skipf stand for a test.
func (p *postgres) Helper() {}

func (p *postgres) Cleanup(f func()) { p.ends = append(p.ends, f) }

func (p *postgres) Error(args ...any) { fmt.Fprintln(os.Stderr, args...) }

func (p *postgres) Fatal(args ...any) { panic(failure(fmt.Sprint(args...))) }

func (p *postgres) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (p *postgres) Skipf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// startPostgres starts a server with an empty database.
func startPostgres(ctx context.Context) (p *postgres, err error) {
	p = &postgres{}
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = errors.New("PostgreSQL: " + string(v))
		default:
			panic(v)
		}
		if err != nil {
			p.stop()
		}
	}()

	p.Server = pgtest.Start(p, "on")
	p.Exec("postgres", "CREATE DATABASE "+database)
	if p.conn, err = pgx.Connect(ctx, p.URL(database)); err != nil {
		return p, fmt.Errorf("PostgreSQL: %w", err)
	}
	backend := 0
	if err := p.conn.QueryRow(ctx, "SELECT pg_backend_pid(), 'PostgreSQL ' || current_setting('server_version')").Scan(&backend, &p.version); err != nil {
		return p, fmt.Errorf("PostgreSQL: %w", err)
	}
	fields, err := statOf(strconv.Itoa(backend))
	if err != nil {
		return p, err
	}
	p.first, err = strconv.Atoi(string(fields[statParent]))
	return p, err
}

// stop ends the server.
func (p *postgres) stop() {
	if p.conn != nil {
		_ = p.conn.Close(context.Background()) // the server ends next
	}
	for i := len(p.ends) - 1; i >= 0; i-- {
		p.ends[i]()
	}
	p.ends = nil
}

// Fields of /proc/PID/stat after the name of the program.
const (
	statParent = 1
	statUser   = 11 // then system, and both of children that have ended
)

func statOf(pid string) ([][]byte, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the CPU time of PostgreSQL: %w", err)
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < statUser+4 {
		return nil, fmt.Errorf("cannot read the CPU time of PostgreSQL: %q", text)
	}
	return fields, nil
}

// cpu is the CPU time of all processes of the server, also of those that have ended.
func (p *postgres) cpu() (time.Duration, error) {
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	ticks := int64(0)
	for _, path := range list {
		pid := filepath.Base(path)
		fields, err := statOf(pid)
		if err != nil {
			continue // it has ended
		}
		first := pid == strconv.Itoa(p.first)
		if !first && string(fields[statParent]) != strconv.Itoa(p.first) {
			continue
		}
		count := 2
		if first {
			count = 4
		}
		for _, f := range fields[statUser : statUser+count] {
			n, err := strconv.ParseInt(string(f), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("cannot read the CPU time of PostgreSQL: %w", err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// exec runs statements one after the other.
func (p *postgres) exec(ctx context.Context, statements ...string) error {
	for _, text := range statements {
		if _, err := p.conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("%.80s: %w", text, err)
		}
	}
	return nil
}
