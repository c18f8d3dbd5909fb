package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// OpenPostgres opens the record in a PostgreSQL database, in the first schema of the search path, and creates its
// tables when they are missing. Several servers may share it.
func OpenPostgres(ctx context.Context, dsn string, o Options) (*Store, error) {
	o = o.withDefaults()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil { // pgx leaves the password out of this error
		return nil, fmt.Errorf("cannot read the address of the database: %w", err)
	}

	setDefaults(cfg, map[string]string{
		"application_name":  "gozzard",
		"lock_timeout":      "10s",
		"statement_timeout": "60s",
		// PostgreSQL's default is meant for rotating disks. With it, PostgreSQL reads a whole table of 50,000 rows
		// to change a few hundred of them by key.
		"random_page_cost": "1.1",
		// The session of a server whose machine is gone must end soon: it holds the lock of the writer.
		"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
	})
	if o.Server != "" {
		setDefaults(cfg, map[string]string{"idle_in_transaction_session_timeout": frozenTimeout})
	}
	cfg.RuntimeParams["synchronous_commit"] = "on" // what is acknowledged must survive a crash
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}

	limitAnswers(cfg)

	// Open the connection of the writer.
	write := stdlib.OpenDB(*cfg)
	write.SetMaxOpenConns(1)
	write.SetMaxIdleConns(1)

	lock := writerLock(o)
	if lock != nil {
		if err := lockFirst(ctx, write, lock); err != nil {
			return nil, errors.Join(err, write.Close())
		}
	}
	if err := preparePostgres(ctx, write); err != nil {
		return nil, errors.Join(err, write.Close())
	}

	// Open the connections of the readers.
	read := stdlib.OpenDB(*cfg)
	readers := max(8, 2*runtime.GOMAXPROCS(0))
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)

	d := &dialect{
		begin:       "BEGIN",
		tables:      `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`,
		forUpdate:   " FOR UPDATE",
		forShare:    " FOR SHARE",
		now:         "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", // not now(): that is the time of BEGIN
		bytes:       "BYTEA",
		looseInsert: "INSERT", copyRows: copyRows,
		placeholder: func(i int) string { return "$" + strconv.Itoa(i) },
		sessions:    selectSessions(" FOR SHARE OF h"),
		jsonNumbers: func(arg string) string {
			return "SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(" + arg + " AS JSON))"
		},
		named: "CAST(choice AS JSON) -> 'templates'",
		jsonTexts: func(arg string) string {
			return "SELECT value FROM json_array_elements_text(CAST(" + arg + " AS JSON))"
		},
		verdicts: selectVerdicts(postgresCode), taskVerdicts: selectTaskVerdicts(postgresCode),
		readContext: func(ctx context.Context) context.Context { return ctx },
		classify:    classifyPostgres,
		reason:      postgresReason,
		readers:     readers,
		queueTime:   queueTimeout,
	}

	d.opened, d.marks = lock, lock != nil
	if o.Server != "" {
		d.oneByOne, d.clock = oneByOne, &recordClock{log: o.Log}
		if err := d.clock.look(ctx, read, d.now, o.Now); err != nil {
			return nil, errors.Join(err, read.Close(), write.Close())
		}
	}

	return newStore(o, d, read, write, noMaintenance{}, func() error { return nil }), nil
}

// postgresCode is the code of the outcome of an attempt a.
const postgresCode = `substring(a.outcome from '^\{"code":"([^"]*)"')`

// writerLock locks the connections of the writer; nil: nothing does, and other stores may write at the same time.
func writerLock(o Options) func(context.Context, *sql.Conn) error {
	switch {
	case o.Sole:
		return soleWriter
	case o.Server != "":
		return sharedWriter(o.Server)
	}
	return nil
}

// setDefaults sets the parameters that the address of the database does not set.
func setDefaults(cfg *pgx.ConnConfig, params map[string]string) {
	for name, value := range params {
		if _, ok := cfg.RuntimeParams[name]; !ok {
			cfg.RuntimeParams[name] = value
		}
	}
}

// preparePostgres checks the version of the schema and brings it up to date.
func preparePostgres(ctx context.Context, db *sql.DB) error {
	var ours int
	err := db.QueryRowContext(ctx,
		`SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = $1`,
		versionTable).Scan(&ours)
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}
	if ours > 0 {
		if newer, err := fits(ctx, db); err != nil || newer {
			return err
		}
		if err := checkVersion(ctx, db); err != nil {
			return err
		}
	}

	locker, err := lock.NewPostgresSessionLocker() // servers that start at the same time migrate one after the other
	if err != nil {
		return err
	}

	words := strings.NewReplacer(" WITHOUT ROWID", "", "COLLATE BINARY", `COLLATE "C"`)
	return migrate(ctx, db, goose.DialectPostgres, words, goose.WithSessionLocker(locker))
}

// noMaintenance does nothing: PostgreSQL looks after its disk space and files by itself.
type noMaintenance struct{}

func (noMaintenance) lowOnSpace(context.Context, *sql.Conn) (bool, error) { return false, nil }
func (noMaintenance) diskFull(context.Context, *sql.Conn) error           { return nil }
func (noMaintenance) present() error                                      { return nil }
func (noMaintenance) watch()                                              {}
func (noMaintenance) afterCommit(context.Context, *sql.Conn) error        { return nil }
func (noMaintenance) beforeClose(context.Context, *sql.Conn) error        { return nil }
