package notify

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// The words of the audit rows, followed by the id. They are stored, so they cannot change.
const (
	auditAddReceiver    = "notify:receiver:"
	auditChangeReceiver = "notify:change-receiver:"
	auditRemoveReceiver = "notify:remove-receiver:"
	auditTest           = "notify:test:"
	auditSubscribe      = "notify:subscribe:"
	auditUnsubscribe    = "notify:unsubscribe:"

	auditChangeSubscription = "notify:change-subscription:"

	auditRetry   = "notify:retry:"
	auditDiscard = "notify:discard:"
)

// The bounds of what callers give.
const (
	maxName     = 64
	maxURL      = 2048
	maxSecret   = 4096
	minSecret   = 16 // shorter ones can be guessed from one request
	maxCA       = 64 << 10
	maxTo       = 50
	maxPatterns = 100
	maxPattern  = 256
	maxDuration = 7 * 24 * time.Hour
)

func (e *Engine) row(caller gozzard.Caller, act string) gozzard.AuditRow {
	return gozzard.AuditRow{At: e.o.Now(), Caller: caller, Act: act, Targets: 1}
}

// find is the position of a receiver with an id or a name, -1 for none. No two receivers have the same name, and an id counts first.
func find(list []record.Receiver, given string) int {
	if i := slices.IndexFunc(list, func(r record.Receiver) bool { return r.ID == given }); i >= 0 {
		return i
	}
	return slices.IndexFunc(list, func(r record.Receiver) bool { return r.Name == given })
}

func newID() string { return strings.ToLower(rand.Text()[:12]) }

// Receivers lists the receivers that a caller may use: an admin of everything all of them, others the shared ones.
func (e *Engine) Receivers(ctx context.Context, caller gozzard.Caller) ([]record.Receiver, error) {
	list, err := e.o.Store.Receivers(ctx)
	if err != nil {
		return nil, err
	}
	list = append(list, e.commands.receivers()...)
	if !caller.Rights.All() {
		list = slices.DeleteFunc(list, func(r record.Receiver) bool { return !r.Shared })
	}
	return list, nil
}

// AddReceiver records a receiver. Only an admin of everything may do so: its address is one that the server connects to.
func (e *Engine) AddReceiver(ctx context.Context, caller gozzard.Caller, r record.Receiver) (record.Receiver, error) {
	if err := checkAdmin(caller); err != nil {
		return r, err
	}
	r.ID, r.Creator, r.Created = newID(), caller, e.o.Now()
	if err := e.checkReceiver(ctx, &r); err != nil {
		return r, err
	}
	row := e.row(caller, auditAddReceiver+r.ID)
	row.Outcome = string(r.Kind)
	return r, e.o.Store.AddReceiver(ctx, r, row)
}

func checkAdmin(caller gozzard.Caller) error {
	if !caller.Rights.All() {
		return gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role admin on everything")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return gozzard.Errorf(gozzard.ErrInvalid, format, args...)
}

// fault is what is wrong with one setting of a request.
func fault(setting, format string, args ...any) error {
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: setting, Text: fmt.Sprintf(format, args...)}}}
}

// checkReceiver rejects settings that cannot work.
func (e *Engine) checkReceiver(ctx context.Context, r *record.Receiver) error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	s := &r.Settings
	switch {
	case s.Language != "" && s.Language != english && s.Language != chinese:
		return fault("language", "%q: use en or zh", clean(s.Language, 20))
	case len(s.CA) > maxCA || max(len(s.Secret), len(s.Authorization), len(s.Password), len(s.User)) > maxSecret:
		return invalid("a secret may have %d bytes, a CA %d", maxSecret, maxCA)
	case strings.ContainsAny(s.Authorization, "\r\n\x00"):
		return fault("authorization", "must be one line")
	}
	if _, err := tlsConfig(s.CA, ""); err != nil {
		return fault("ca", "%s", err)
	}

	switch r.Kind {
	case record.ReceiverMail:
		return e.checkMail(ctx, r)
	case record.ReceiverCommand:
		return invalid("commands are files in the folder of the server's flag --notify-commands: they cannot be created here")
	}
	if !slices.Contains(allKinds(), r.Kind) {
		return fault("kind", "%q is not a kind of receivers: use one of %s", clean(string(r.Kind), 40), strings.Join(kindWords(), ", "))
	}
	for _, f := range []struct {
		setting string
		given   bool
	}{{"server", s.Server != ""}, {"tls", s.TLS != ""}, {"user", s.User != ""}, {"password", s.Password != ""}, {"from", s.From != ""},
		{"to", len(s.To) > 0}} {
		if f.given {
			return fault(f.setting, "only receivers of mail have this")
		}
	}
	return e.checkURL(r)
}

func kindWords() (words []string) {
	for _, k := range allKinds() {
		if k != record.ReceiverCommand {
			words = append(words, string(k))
		}
	}
	return words
}

// checkURL checks the address of a receiver. That a name means an allowed address is checked when the server connects.
func (e *Engine) checkURL(r *record.Receiver) error {
	s := &r.Settings
	if s.URL != "" && !strings.Contains(s.URL, "://") {
		return fault("url", "the address needs https:// (or http://) in front")
	}
	u, err := url.Parse(s.URL)
	if err != nil || len(s.URL) > maxURL || u.Host == "" || u.User != nil || u.Fragment != "" ||
		u.Scheme != "https" && u.Scheme != "http" {
		return fault("url", "use an address such as https://hooks.example.com/gozzard, without a user and a fragment")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := e.dial.check(ip); err != nil {
			return fault("url", "%s", err)
		}
	}

	switch {
	case r.Kind == record.ReceiverWebhook && s.Secret != "" && len(s.Secret) < minSecret:
		return fault("secret", "use at least %d bytes", minSecret)
	case s.Secret != "" && slices.Contains([]record.ReceiverKind{record.ReceiverAlertmanager, record.ReceiverWeCom,
		record.ReceiverSlack}, r.Kind):
		return fault("secret", "receivers of the kind %s have no secret for signatures", r.Kind)
	case s.Authorization != "" && r.Kind != record.ReceiverWebhook && r.Kind != record.ReceiverAlertmanager:
		return fault("authorization", "receivers of the kind %s have no authorization", r.Kind)
	}
	return nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxName || clean(name, maxName) != name || strings.TrimSpace(name) != name {
		return fault("name", "use 1 to %d bytes in one line", maxName)
	}
	return nil
}

// RemoveReceiver removes a receiver that no subscription uses, and returns it.
func (e *Engine) RemoveReceiver(ctx context.Context, caller gozzard.Caller, id string) (r record.Receiver, err error) {
	if err := checkAdmin(caller); err != nil {
		return r, err
	}
	list, err := e.o.Store.Receivers(ctx)
	if err != nil {
		return r, err
	}
	subs, err := e.o.Store.Subscriptions(ctx)
	if err != nil {
		return r, err
	}
	i := find(list, id)
	if i < 0 {
		return r, noReceiver(id)
	}

	r = list[i]
	for i := range subs {
		if slices.Contains(subs[i].Receivers, r.ID) {
			return r, gozzard.Errorf(gozzard.ErrConflict, "the subscription %s (%s) uses this receiver: remove it first", subs[i].ID,
				clean(subs[i].Name, maxName))
		}
	}
	return r, e.o.Store.RemoveReceiver(ctx, r.ID, e.row(caller, auditRemoveReceiver+r.ID))
}
