package sqlstore

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// PostgresAddress is the address of a database.
type PostgresAddress struct {
	DSN  string // for OpenPostgres; has the password
	Name string // for people: without password and settings
	Weak string // why others on the network could read or change what is sent; "": they cannot

	Password bool // the address has one
}

// ParsePostgres reads the address of a database as people write it. A connection to another machine uses TLS and checks
// the certificate, unless sslmode says something else.
func ParsePostgres(text string) (a PostgresAddress, err error) {
	u, err := url.Parse(text)
	if err != nil { // its text would have the password
		return a, errors.New("this is not an address: use postgres://USER@HOST/DATABASE, with %-codes for special characters in the password")
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return a, fmt.Errorf("this is not an address of PostgreSQL: use postgres://USER@HOST/DATABASE")
	}

	q := u.Query()
	hosts := strings.Split(u.Host, ",")
	if h := q.Get("host"); h != "" {
		hosts = strings.Split(h, ",")
	}
	remote := false
	for _, h := range hosts {
		remote = remote || !isLocal(h)
	}

	mode := q.Get("sslmode")
	switch {
	case remote && mode == "":
		q.Set("sslmode", "verify-full")
	case remote && mode != "verify-full" && mode != "verify-ca":
		a.Weak = "sslmode=" + mode + " checks no certificate; use sslmode=verify-full with sslrootcert=FILE"
	}
	if len(hosts) > 1 && !q.Has("target_session_attrs") {
		q.Set("target_session_attrs", "read-write")
	}

	_, a.Password = u.User.Password()
	a.Password = a.Password || q.Get("password") != ""
	u.RawQuery = q.Encode()
	a.DSN = u.String()
	a.Name = "postgres://" + strings.Join(hosts, ",") + u.Path
	return a, nil
}

// isLocal reports whether a host of an address is this machine: empty, the folder of a socket, or a loopback address.
func isLocal(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip, err := netip.ParseAddr(host)
	return host == "" || strings.HasPrefix(host, "/") || host == "localhost" || err == nil && ip.IsLoopback()
}
