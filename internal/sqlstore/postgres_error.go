package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// classifyPostgres goes by the SQLSTATE codes of PostgreSQL.
func classifyPostgres(err error) failure {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch {
		case e.Code == "53100": // disk_full
			return failFull
		case e.Code == "40001", e.Code == "40P01", e.Code == "55P03": // serialization, deadlock, lock not available
			return failRetry
		case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "57"),
			strings.HasPrefix(e.Code, "58"), e.Code == "25006":
			// Connection, resources, operator intervention, system error; a read-only standby.
			return failBroken
		}
		return failStatement
	}

	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) {
		return failBroken
	}

	return failStatement
}

// postgresReason says in words for callers why PostgreSQL did not do something; "": it does not respond.
func postgresReason(err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Code {
	case "25006":
		return "the database accepts no changes: it is a standby, or was set to read-only"
	case "53300":
		return "the database accepts no more connections"
	case "57P03":
		return "the database is starting or stopping"
	}
	return ""
}
