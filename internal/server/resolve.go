package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// resolveHelp has one command for each grant of an older version.
func resolveHelp(data string, grants []auth.HeldGrant) string {
	lines := []string{"The server does not start before each of them is resolved. Run these commands as the account of " +
		"the server, with the accounts and hosts that you mean:"}
	for i := range grants {
		lines = append(lines, "  "+resolveCommand(data, &grants[i]))
	}
	return strings.Join(lines, "\n")
}

// resolveCommand is the command that resolves a grant.
func resolveCommand(data string, g *auth.HeldGrant) string {
	holder := "--app " + shellWord(g.Holder.App)
	if g.Holder.App == "" {
		holder = "--user " + shellWord(g.Holder.User)
	}
	text := fmt.Sprintf("gozzard grant resolve --data %s %s --grant %d", shellWord(data), holder, g.Number)
	if g.NeedsHosts() {
		text += " --any-host"
	}
	if g.NeedsAccounts() {
		text += " --account ACCOUNT"
	}
	return text
}

// shellWord quotes a word for a shell where that is needed.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Resolution says which grant of an older version means what from now on.
type Resolution struct {
	App, User string // the holder: one of them
	Number    int    // of the grant
	AnyHost   bool
	Clouds    []int
	Nets      []netip.Prefix
	Accounts  []string
}

// ResolveGrant gives a grant of an older version its hosts and accounts, in the data folder of a server that does not
// run. It returns the commands for the grants that are left.
func ResolveGrant(ctx context.Context, data string, r Resolution) (left []string, err error) {
	if err := backup.CheckHere(data); err != nil {
		return nil, err
	}
	path := filepath.Join(data, backup.RecordFile)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%s is not the data folder of a server: %w", data, err)
	}
	store, err := sqlstore.OpenSQLite(ctx, path, sqlstore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	grants, err := auth.Resolve(ctx, store, system(), time.Now(), auth.Holder{App: r.App, User: r.User}, r.Number,
		auth.Resolution{AnyHost: r.AnyHost, Clouds: r.Clouds, Nets: r.Nets, Accounts: r.Accounts})
	for i := range grants {
		left = append(left, resolveCommand(data, &grants[i]))
	}
	return left, err
}
