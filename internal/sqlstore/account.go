package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/record"
)

var _ auth.Store = (*Store)(nil)

var (
	upsertApps = insertRows("apps", appColumns,
		` ON CONFLICT (code) DO UPDATE
			SET secrets = excluded.secrets, sign_keys = excluded.sign_keys, asserts_users = excluded.asserts_users,
			missing_op_type_means_start = excluded.missing_op_type_means_start, grants = excluded.grants,
			unknown_users = excluded.unknown_users, disabled = excluded.disabled, known_by = excluded.known_by`)
	upsertUsers = insertRows("users", userColumns,
		` ON CONFLICT (name) DO UPDATE SET password = excluded.password, subject = excluded.subject,
			disabled = excluded.disabled, grants = excluded.grants, second_factor = excluded.second_factor`)
	upsertTokens = insertRows("user_tokens", tokenColumns,
		` ON CONFLICT (digest) DO UPDATE
			SET id = excluded.id, owner = excluded.owner, note = excluded.note, session = excluded.session,
			created = excluded.created, expires = excluded.expires, kind = excluded.kind, for_app = excluded.for_app,
			member_of = excluded.member_of, opened_by = excluded.opened_by`)
	upsertGrantGroups = insertRows("grant_groups", "name, grants",
		` ON CONFLICT (name) DO UPDATE SET grants = excluded.grants`)
	upsertDeletedUsers = insertRows("deleted_users", "name, at", ` ON CONFLICT (name) DO UPDATE SET at = excluded.at`)
)

const (
	appColumns = "code, secrets, sign_keys, asserts_users, missing_op_type_means_start, grants, unknown_users, disabled, " +
		"known_by"
	userColumns  = "name, password, subject, disabled, grants, second_factor"
	tokenColumns = "digest, id, owner, note, session, created, expires, kind, for_app, member_of, opened_by"
)

// The values of the column unknown_users.
const (
	unknownRights  = "rights"
	unknownNothing = "nothing"
)

// LoadAccounts implements auth.Store.
func (s *Store) LoadAccounts(ctx context.Context) (c auth.Config, known bool, err error) {
	defer s.timed("load_accounts", &err)()

	err = s.read.snapshot(ctx, func(tx *sql.Tx) error {
		// The counter is above 0 once there have been accounts.
		var changes int64
		if err := tx.QueryRowContext(ctx,
			`SELECT value FROM counters WHERE name = 'accounts'`).Scan(&changes); err != nil {
			return err
		}

		c.Version, known = changes, changes > 0

		rows, err := tx.QueryContext(ctx,
			`SELECT `+appColumns+` FROM apps ORDER BY code`)
		if err := scanAll(rows, err, func(r *sql.Rows) error { return scanApp(r, &c.Apps) }); err != nil {
			return err
		}

		rows, err = tx.QueryContext(ctx, `SELECT `+userColumns+` FROM users ORDER BY name`)
		if err := scanAll(rows, err, func(r *sql.Rows) error { return scanUser(r, &c.Users) }); err != nil {
			return err
		}

		rows, err = tx.QueryContext(ctx, `SELECT name, grants FROM grant_groups ORDER BY name`)
		if err := scanAll(rows, err, func(r *sql.Rows) error { return scanGrantGroup(r, &c.Groups) }); err != nil {
			return err
		}

		rows, err = tx.QueryContext(ctx, `SELECT name, at FROM deleted_users ORDER BY name`)
		if err := scanAll(rows, err, func(r *sql.Rows) error { return scanDeletedUser(r, &c.Deleted) }); err != nil {
			return err
		}

		rows, err = tx.QueryContext(ctx, `SELECT `+tokenColumns+` FROM user_tokens ORDER BY digest`)
		return scanAll(rows, err, func(r *sql.Rows) error { return scanToken(r, &c.Tokens) })
	})

	return c, known, s.readError("accounts", err)
}

func scanApp(r *sql.Rows, to *[]auth.App) error {
	var a auth.App
	var secrets, keys, grants, unknown, knownBy string
	if err := r.Scan(&a.Code, &secrets, &keys, &a.AssertsUsers, &a.MissingActionMeansStart, &grants, &unknown,
		&a.Disabled, &knownBy); err != nil {
		return err
	}

	err := errors.Join(json.Unmarshal([]byte(secrets), &a.Secrets), json.Unmarshal([]byte(keys), &a.SignKeys),
		json.Unmarshal([]byte(grants), &a.Grants), json.Unmarshal([]byte(knownBy), &a.KnownBy))
	if err != nil {
		return fmt.Errorf("app %q is not readable: %w", a.Code, err)
	}
	if a.Grants == nil {
		a.Grants = []gozzard.Grant{} // grants nothing; nil would grant everything
	}

	if unknown != "" {
		admits := unknown == unknownRights
		a.UnknownUsers = &admits
	}

	*to = append(*to, a)
	return nil
}

func scanUser(r *sql.Rows, to *[]auth.User) error {
	var u auth.User
	var grants, second string
	if err := r.Scan(&u.Name, &u.Password, &u.Subject, &u.Disabled, &grants, &second); err != nil {
		return err
	}
	if second != "" {
		if err := json.Unmarshal([]byte(second), &u.Second); err != nil {
			return fmt.Errorf("the second factor of user %q is not readable: %w", u.Name, err)
		}
	}
	if err := json.Unmarshal([]byte(grants), &u.Grants); err != nil {
		return fmt.Errorf("user %q is not readable: %w", u.Name, err)
	}
	*to = append(*to, u)
	return nil
}

func scanToken(r *sql.Rows, to *[]auth.Token) error {
	var t auth.Token
	var digest []byte
	var groups string
	if err := r.Scan(&digest, &t.ID, &t.User, &t.Note, &t.Session, (*stamp)(&t.Created), (*stamp)(&t.Expires), &t.Kind,
		&t.App, &groups, &t.OpenedBy); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(groups), &t.Groups); err != nil {
		return fmt.Errorf("the groups of a token of user %q are not readable: %w", t.User, err)
	}
	if len(digest) != len(t.Digest) {
		return fmt.Errorf("a token of user %q has a digest of %d bytes", t.User, len(digest))
	}
	copy(t.Digest[:], digest)
	*to = append(*to, t)
	return nil
}

// accountRows are the JSON texts of a change, one for each app, user, group or token in it.
type accountRows struct {
	secrets, keys, appGrants, knownBy, userGrants, seconds, groupGrants, tokenGroups []string
}

func newAccountRows(c *auth.Change) (r accountRows, err error) {
	add := func(to *[]string, v any) {
		b, e := json.Marshal(v)
		if e != nil {
			err = fmt.Errorf("cannot encode accounts: %w", e)
		}
		*to = append(*to, string(b))
	}

	for i := range c.Apps {
		add(&r.secrets, c.Apps[i].Secrets)
		add(&r.keys, c.Apps[i].SignKeys)
		add(&r.appGrants, c.Apps[i].Grants)
		add(&r.knownBy, c.Apps[i].KnownBy)
	}

	for i := range c.Users {
		add(&r.userGrants, c.Users[i].Grants)
		if c.Users[i].Second == nil {
			r.seconds = append(r.seconds, "")
			continue
		}
		add(&r.seconds, c.Users[i].Second)
	}

	for i := range c.Groups {
		add(&r.groupGrants, c.Groups[i].Grants)
	}

	for i := range c.Tokens {
		add(&r.tokenGroups, c.Tokens[i].Groups)
	}

	return r, err
}

// ChangeAccounts implements auth.Store.
func (s *Store) ChangeAccounts(ctx context.Context, c auth.Change) (err error) {
	defer s.timed("change_accounts", &err)()
	rows, err := newAccountRows(&c)
	if err != nil {
		return err
	}

	audit, err := accountsRow(ctx, &c, &rows)
	if err != nil {
		return err
	}

	n := len(c.Apps) + len(c.Users) + len(c.Groups) + len(c.Tokens) + len(c.Deleted)
	run := func(ctx context.Context, w *conn) error {
		if err := addAudit(ctx, w, audit); err != nil {
			return err
		}
		changed, err := w.change(ctx, `UPDATE counters SET value = value + 1 WHERE name = 'accounts' AND ($1 = 0 OR value = $1)`,
			c.Base)
		if err == nil && changed == 0 {
			err = gozzard.Errorf(gozzard.ErrConflict, "another server changed the accounts at the same moment, and nothing was changed "+
				"here: try again")
		}
		if err != nil {
			return err
		}
		if err := w.bump(ctx, record.KindAccounts); err != nil {
			return err
		}
		if err := dropAccounts(ctx, w, &c); err != nil {
			return err
		}
		return putAccounts(ctx, w, &c, &rows)
	}

	return s.w.submit(ctx, &job{op: "a change of accounts", rows: n + 1, grows: n > 0, run: run})
}

// accountsRow is the audit row of a change. Its request hash covers what is written, with digests in place of secrets.
// Its content has the grants of the apps and users that the change writes.
func accountsRow(ctx context.Context, c *auth.Change, rows *accountRows) (row gozzard.AuditRow, err error) {
	sum := sha256.New()
	for _, list := range [][]string{rows.secrets, rows.appGrants, rows.userGrants, rows.groupGrants} {
		for _, s := range list {
			sum.Write([]byte(s))
			sum.Write([]byte{0})
		}
	}

	var text strings.Builder
	for i := range c.Apps {
		fmt.Fprintf(&text, "app %s: grants %s\n", c.Apps[i].Code, rows.appGrants[i])
	}
	for i := range c.Users {
		fmt.Fprintf(&text, "user %s: disabled %t, grants %s\n", c.Users[i].Name, c.Users[i].Disabled, rows.userGrants[i])
	}

	row = withOrigin(ctx, gozzard.AuditRow{At: c.At, Caller: c.By, Act: c.Act})
	sum.Sum(row.RequestHash[:0])
	return row, row.SetText(text.String())
}

// dropAccounts removes the accounts that a change removes, and tokens that have expired.
func dropAccounts(ctx context.Context, w *conn, c *auth.Change) error {
	for _, code := range c.DropApps {
		if _, err := w.change(ctx, `DELETE FROM apps WHERE code = $1`, text(code)); err != nil {
			return err
		}
	}

	for _, name := range c.DropUsers {
		if _, err := w.change(ctx, `DELETE FROM user_tokens WHERE owner = $1`, text(name)); err != nil {
			return err
		}
		if _, err := w.change(ctx, `DELETE FROM users WHERE name = $1`, text(name)); err != nil {
			return err
		}
	}

	for _, name := range c.Restored {
		if _, err := w.change(ctx, `DELETE FROM deleted_users WHERE name = $1`, text(name)); err != nil {
			return err
		}
	}

	for i := range c.Groups {
		if len(c.Groups[i].Grants) == 0 {
			if _, err := w.change(ctx, `DELETE FROM grant_groups WHERE name = $1`, text(c.Groups[i].Name)); err != nil {
				return err
			}
		}
	}

	for i := range c.DropTokens {
		if _, err := w.change(ctx, `DELETE FROM user_tokens WHERE digest = $1`, c.DropTokens[i][:]); err != nil {
			return err
		}
	}

	_, err := w.change(ctx, `DELETE FROM user_tokens WHERE expires > 0 AND expires <= $1`, millis(c.At))
	return err
}

func putAccounts(ctx context.Context, w *conn, c *auth.Change, rows *accountRows) error {
	err := w.execRows(ctx, upsertApps, len(c.Apps), func(i int, to []any) []any {
		a := &c.Apps[i]
		return append(to, text(a.Code), rows.secrets[i], rows.keys[i], a.AssertsUsers, a.MissingActionMeansStart,
			rows.appGrants[i], unknownUsers(a), a.Disabled, rows.knownBy[i])
	})
	if err != nil {
		return err
	}

	err = w.execRows(ctx, upsertUsers, len(c.Users), func(i int, to []any) []any {
		u := &c.Users[i]
		return append(to, text(u.Name), u.Password, text(u.Subject), u.Disabled, rows.userGrants[i], rows.seconds[i])
	})
	if err != nil {
		return err
	}

	if err := putGroups(ctx, w, c, rows); err != nil {
		return err
	}

	return w.execRows(ctx, upsertTokens, len(c.Tokens), func(i int, to []any) []any {
		t := &c.Tokens[i]
		return append(to, t.Digest[:], t.ID, text(t.User), text(t.Note), t.Session, millis(t.Created),
			millis(t.Expires), string(t.Kind), text(t.App), rows.tokenGroups[i], t.OpenedBy)
	})
}
