package notify

import (
	"context"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// ChangeReceiver changes settings of a receiver. What the change does not name stays, secrets included, and nothing shows
// them. So a secret never follows the receiver to another place: a change of where messages go, or of how the place is
// recognized, needs each secret again. Otherwise a receiver with a new address would get the secret of the old one, and
// signatures that the old one accepts. The result is the receiver after the change.
func (e *Engine) ChangeReceiver(ctx context.Context, caller gozzard.Caller, id string, change record.ReceiverChange) (r record.Receiver,
	err error) {
	if err := checkAdmin(caller); err != nil {
		return r, err
	}
	if strings.HasPrefix(id, commandPrefix) {
		return r, gozzard.Errorf(gozzard.ErrConflict, "commands are files in the folder of the server's flag --notify-commands: "+
			"they cannot be changed here")
	}
	list, err := e.o.Store.Receivers(ctx)
	if err != nil {
		return r, err
	}
	i := find(list, id)
	if i < 0 {
		return r, noReceiver(id)
	}

	was := list[i]
	var named []string
	r, named = changed(was, &change)
	if len(named) == 0 {
		return r, invalid("nothing to change: name at least one setting")
	}
	if err := e.checkReceiver(ctx, &r); err != nil {
		return r, err
	}
	if err := checkSecrets(&was, &r, named); err != nil {
		return r, err
	}

	row := e.row(caller, auditChangeReceiver+was.ID)
	row.Outcome = strings.Join(named, ",")
	return r, e.o.Store.ChangeReceiver(ctx, was, r, row)
}

// changed is a receiver after a change, and the names of the settings that the change has.
func changed(r record.Receiver, c *record.ReceiverChange) (out record.Receiver, named []string) {
	s := &r.Settings
	for _, f := range []struct {
		name string
		from *string
		to   *string
	}{{"name", c.Name, &r.Name}, {"url", c.URL, &s.URL}, {"secret", c.Secret, &s.Secret},
		{"authorization", c.Authorization, &s.Authorization}, {"ca", c.CA, &s.CA}, {"language", c.Language, &s.Language},
		{"server", c.Server, &s.Server}, {"tls", c.TLS, &s.TLS}, {"user", c.User, &s.User}, {"password", c.Password, &s.Password},
		{"from", c.From, &s.From}} {
		if f.from != nil {
			*f.to = *f.from
			named = append(named, f.name)
		}
	}
	if c.Shared != nil {
		r.Shared = *c.Shared
		named = append(named, "shared")
	}
	if c.To != nil {
		s.To = slices.Clone(c.To)
		named = append(named, "to")
	}
	return r, named
}

// checkSecrets rejects a change that would take a secret to another place.
func checkSecrets(was, is *record.Receiver, named []string) error {
	// See whether it leads elsewhere.
	a, b := &was.Settings, &is.Settings
	if a.URL == b.URL && a.Server == b.Server && a.TLS == b.TLS && a.User == b.User && a.CA == b.CA {
		return nil
	}

	// Find the secrets that would go there.
	var kept []string
	for _, f := range []struct{ name, was string }{{"secret", a.Secret}, {"authorization", a.Authorization}, {"password", a.Password}} {
		if f.was != "" && !slices.Contains(named, f.name) {
			kept = append(kept, f.name)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	e := &gozzard.Error{Kind: gozzard.ErrInvalid}
	for _, setting := range kept {
		e.Faults = append(e.Faults, gozzard.Fault{Path: setting, Text: "the receiver moves, and this belongs to its former place: " +
			"give it again, or an empty value to remove it"})
	}
	return e
}
