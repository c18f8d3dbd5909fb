package enrol

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// The words of the audit rows, followed by the id of the relay. They are stored, so they cannot change.
const (
	auditRelayToken  = "relay:token:"
	auditRelayJoin   = "relay:join:"
	auditRelayRenew  = "relay:renew:"
	auditRelayRemove = "relay:remove:"
)

// RelayDeskOptions are the parts of a RelayDesk. Store, Authority and Rights are required.
type RelayDeskOptions struct {
	Store     RelayStore
	Authority *Authority
	Rights    func(creator gozzard.Caller) *gozzard.Rights // the present ones; nil: none
	Servers   func() []string                              // HOST:PORT of all servers for relays
	Refused   func(rule string)                            // may be nil
	Now       func() time.Time
	Log       *slog.Logger
}

// RelayDesk knows the relays and decides which may connect. It is safe for concurrent use.
type RelayDesk struct {
	o RelayDeskOptions

	life   context.Context // of what is noted beside the answers
	end    context.CancelFunc
	noting sync.WaitGroup

	writing sync.Mutex // held while a relay changes: what is read meanwhile must not replace it in memory

	mu      sync.Mutex
	relays  map[string]RelayRecord
	areas   map[int][]gozzard.ServerAddress // what hosts of an area with relays learn
	seen    map[string]time.Time            // when it was noted last that a relay is here
	cut     func(id string)                 // closes the connections of a relay
	changed func()                          // hosts may use other relays than before
}

// NewRelayDesk reads the relays.
func NewRelayDesk(ctx context.Context, o RelayDeskOptions) (*RelayDesk, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	if o.Servers == nil {
		o.Servers = func() []string { return nil }
	}
	d := &RelayDesk{o: o, relays: map[string]RelayRecord{}, seen: map[string]time.Time{}, cut: func(string) {}, changed: func() {}}
	d.life, d.end = context.WithCancel(context.WithoutCancel(ctx))
	return d, d.Reload(ctx)
}

// Close waits for what is noted beside the answers. No relay may be connected any more.
func (d *RelayDesk) Close() {
	d.end()
	d.noting.Wait()
}

// OnCut sets the function that closes the connections of a relay.
func (d *RelayDesk) OnCut(cut func(id string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = cut
}

// OnChange sets the function that is called when hosts may use other relays than before.
func (d *RelayDesk) OnChange(changed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = changed
}

// Reload reads the relays again, because another server changed some. Those that are gone are disconnected.
func (d *RelayDesk) Reload(ctx context.Context) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	list, err := d.o.Store.Relays(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the relays: %w", err)
	}

	now := map[string]RelayRecord{}
	for _, r := range list {
		now[r.ID] = r
	}
	var gone []string
	d.change(func(relays map[string]RelayRecord) {
		for id := range relays {
			if _, ok := now[id]; !ok {
				gone = append(gone, id)
			}
		}
		clear(relays)
		maps.Copy(relays, now)
	})
	d.disconnect(gone...)
	return nil
}

// change changes the relays in memory, and says so if hosts may use others than before.
func (d *RelayDesk) change(f func(relays map[string]RelayRecord)) {
	d.mu.Lock()
	f(d.relays)
	before := d.areas
	d.areas = areasOf(d.relays)
	differ, changed := !reflect.DeepEqual(before, d.areas), d.changed
	d.mu.Unlock()
	if differ {
		changed()
	}
}

// disconnect closes the connections of relays that are gone.
func (d *RelayDesk) disconnect(ids ...string) {
	d.mu.Lock()
	cut := d.cut
	d.mu.Unlock()
	for _, id := range ids {
		cut(id)
	}
}

// areasOf are the areas that have relays, with the addresses that their hosts learn, as far as they are known.
func areasOf(relays map[string]RelayRecord) map[int][]gozzard.ServerAddress {
	out := map[int][]gozzard.ServerAddress{}
	for _, r := range relays {
		if r.State != RelayActive {
			continue
		}
		a, known := r.AsServer()
		for _, cloud := range r.Areas {
			if out[cloud] == nil {
				out[cloud] = []gozzard.ServerAddress{}
			}
			if known && !slices.Contains(out[cloud], a) {
				out[cloud] = append(out[cloud], a)
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b gozzard.ServerAddress) int { return cmp.Compare(a.Agents, b.Agents) })
	}
	return out
}

// ServersOf are the relays of a cloud area as its hosts know servers. An area with relays is reached through them only:
// has says so also while their addresses are not known. The list must not be changed.
func (d *RelayDesk) ServersOf(cloud int) (list []gozzard.ServerAddress, has bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, has = d.areas[cloud]
	return list, has
}

// put stores a relay in memory.
func (d *RelayDesk) put(r RelayRecord) {
	d.change(func(relays map[string]RelayRecord) { relays[r.ID] = r })
}

// RelayTokenRequest describes a relay that may join.
type RelayTokenRequest struct {
	Name  string
	Areas []int
	TTL   time.Duration
}

// check finds what is wrong with a request.
func (r *RelayTokenRequest) check() error {
	e := &gozzard.Error{Kind: gozzard.ErrInvalid}
	fault := func(bad bool, path, text string) {
		if bad {
			e.Faults = append(e.Faults, gozzard.Fault{Path: path, Text: text})
		}
	}
	fault(r.TTL <= 0 || r.TTL > MaxRelayTTL, "ttl", "must be above 0 and at most 7 days")
	fault(r.Name == "" || len(r.Name) > maxRelayName || !gozzard.IsPlainLine(r.Name), "name", "must be one line of 1 to 64 bytes")
	fault(len(r.Areas) == 0 || len(r.Areas) > maxRelayAreas, "areas", "must be 1 to 256 cloud areas")
	fault(slices.ContainsFunc(r.Areas, func(n int) bool { return n < 0 }), "areas", "must be 0 or more")
	fault(slices.Contains(r.Areas, 0), "areas", "cloud area 0 is the one that reaches the servers directly: a relay is for others")
	if len(e.Faults) > 0 {
		return e
	}
	return nil
}

// CreateToken makes a token for one relay. Its text cannot be read again later.
func (d *RelayDesk) CreateToken(ctx context.Context, caller gozzard.Caller, req RelayTokenRequest) (Token, RelayRecord, error) {
	if err := req.check(); err != nil {
		return Token{}, RelayRecord{}, err
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	now := d.o.Now()
	t := newToken(d.o.Authority.Pin())
	t.Relay = true
	rec := RelayRecord{ID: t.ID, Name: req.Name, Areas: slices.Compact(slices.Sorted(slices.Values(req.Areas))),
		State: RelayInvited, Digest: sha256.Sum256([]byte(t.Secret)), Created: now, Expires: now.Add(req.TTL),
		CreatedBy: caller.App + "/" + caller.User}
	if err := d.o.Store.AddRelay(ctx, rec, AuditEntry{At: now, Caller: caller, What: auditRelayToken + t.ID}); err != nil {
		return Token{}, RelayRecord{}, err
	}
	d.put(rec)
	return t, rec, nil
}

// errRelayToken is the error for every invalid token. The cause is for the log.
func errRelayToken(cause string) error {
	return &gozzard.Error{Kind: gozzard.ErrUnauthenticated,
		Message: "the token is not valid here: it is unknown, was used already, or has expired; make another one with " +
			"\"gozzard relays token\"",
		Cause: errors.New(cause)}
}

// Join makes a relay a member if its token is valid. from is the address that the request came from.
func (d *RelayDesk) Join(ctx context.Context, from netip.Addr, req RelayJoinRequest) (RelayAnswer, error) {
	// Check the request.
	t, err := ParseRelayToken(relayVersion + "." + req.Token + "." + d.o.Authority.Pin())
	if err != nil {
		return RelayAnswer{}, errRelayToken("not a token")
	}
	csr, err := readCSR(req.CSR)
	if err != nil {
		return RelayAnswer{}, invalid("csr", err.Error())
	}
	serial, err := newSerial()
	if err != nil {
		return RelayAnswer{}, err
	}

	// Use the token.
	d.writing.Lock()
	defer d.writing.Unlock()
	now := d.o.Now()
	rec, err := d.o.Store.ChangeRelay(ctx, t.ID, func(r RelayRecord) (RelayRecord, error) {
		if err := d.checkToken(&r, t.Secret, now); err != nil {
			return r, err
		}
		r.State, r.Serial, r.NotAfter = RelayActive, serialText(serial), now.Add(d.o.Authority.o.Life)
		return r, nil
	}, AuditEntry{At: now, What: auditRelayJoin + t.ID, Caller: gozzard.Caller{App: "relay", User: "token " + t.ID}})
	if gozzard.KindOf(err) == gozzard.ErrNotFound {
		err = errRelayToken("no such token")
	}
	if err != nil {
		d.o.Refused("relay_join")
		return RelayAnswer{}, err
	}

	d.put(rec)
	d.o.Log.Info("relay joined", "relay", rec.ID, "name", rec.Name, "areas", rec.Areas, "from", from.String())
	der, err := d.o.Authority.signRelay(csr, rec.ID, serial)
	if err != nil {
		return RelayAnswer{}, err
	}
	return d.answer(&rec, der), nil
}

// checkToken returns why the token of a relay is not valid now, nil if it is.
func (d *RelayDesk) checkToken(r *RelayRecord, secret string, now time.Time) error {
	given := sha256.Sum256([]byte(secret))
	app, user, _ := strings.Cut(r.CreatedBy, "/")
	switch {
	case subtle.ConstantTimeCompare(given[:], r.Digest[:]) != 1:
		return errRelayToken("wrong secret")
	case r.State != RelayInvited:
		return errRelayToken("used already")
	case !now.Before(r.Expires):
		return errRelayToken("expired")
	case !d.o.Rights(gozzard.Caller{App: app, User: user}).All():
		return errRelayToken("its creator is not an admin of everything any more")
	}
	return nil
}

func (d *RelayDesk) answer(r *RelayRecord, der []byte) RelayAnswer {
	return RelayAnswer{ID: r.ID, Name: r.Name, Areas: r.Areas, Certificate: string(certPEM(der)),
		Authorities: string(d.o.Authority.Bundle()), Servers: d.o.Servers()}
}

// Admit returns the relay that a certificate belongs to, or an error if it may not connect. renewing accepts a
// certificate that has expired.
func (d *RelayDesk) Admit(cs *tls.ConnectionState, renewing bool) (RelayRecord, error) {
	id, err := d.o.Authority.identifyRelay(cs)
	if err != nil {
		return RelayRecord{}, d.refuse("relay_certificate", "", err)
	}
	r, err := d.Active(id.id)
	switch {
	case err != nil:
		return RelayRecord{}, d.refuse("relay_unknown", id.id, err)
	case id.serial != r.Serial && id.serial != r.Previous:
		return RelayRecord{}, d.refuse("relay_old_certificate", id.id, errors.New("it showed a certificate that was replaced: "+
			"its folder was copied or restored. If another machine uses its certificate, remove it with \"gozzard relays remove\""))
	case id.expired && !renewing:
		return RelayRecord{}, d.refuse("relay_expired", id.id, errors.New("its certificate has expired"))
	}
	return r, nil
}

// Active returns a relay that may be connected.
func (d *RelayDesk) Active(id string) (RelayRecord, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.relays[id]
	if !ok || r.State != RelayActive {
		return RelayRecord{}, fmt.Errorf("there is no relay %.40q: it was removed", id)
	}
	return r, nil
}

// refuse counts and logs a relay that is rejected.
func (d *RelayDesk) refuse(rule, id string, err error) error {
	d.o.Refused(rule)
	d.o.Log.Warn("relay rejected", "rule", rule, "relay", id, "err", err)
	return err
}

// Renew issues a certificate for a new key to a relay that has authenticated. Its connection may be older than the
// certificate that it has: the one that it has stays valid, because the answer may be lost.
func (d *RelayDesk) Renew(ctx context.Context, id string, req RelayRenewRequest) (RelayAnswer, error) {
	csr, err := readCSR(req.CSR)
	if err != nil {
		return RelayAnswer{}, invalid("csr", err.Error())
	}
	serial, err := newSerial()
	if err != nil {
		return RelayAnswer{}, err
	}

	d.writing.Lock()
	defer d.writing.Unlock()
	now := d.o.Now()
	rec, err := d.o.Store.ChangeRelay(ctx, id, func(r RelayRecord) (RelayRecord, error) {
		if req.Current != r.Previous { // else the answer with r.Serial was lost
			r.Previous = r.Serial
		}
		r.Serial, r.NotAfter = serialText(serial), now.Add(d.o.Authority.o.Life)
		return r, nil
	}, AuditEntry{At: now, What: auditRelayRenew + id, Caller: gozzard.Caller{App: "relay"}})
	if err != nil {
		return RelayAnswer{}, err
	}
	d.put(rec)
	der, err := d.o.Authority.signRelay(csr, id, serial)
	if err != nil {
		return RelayAnswer{}, err
	}
	return d.answer(&rec, der), nil
}

// Hello takes in what a relay says of itself, and answers it. server is the id of this server.
func (d *RelayDesk) Hello(ctx context.Context, id, server string, h RelayHello) (RelayWelcome, error) {
	for _, a := range []string{h.Agents, h.API} {
		if _, _, err := net.SplitHostPort(a); err != nil || len(a) > 300 || !gozzard.IsPlainLine(a) {
			return RelayWelcome{}, invalid("agents", fmt.Sprintf("%.80q is not of the form host:port", a))
		}
	}
	r, err := d.Active(id)
	if err != nil {
		return RelayWelcome{}, gozzard.Errorf(gozzard.ErrUnauthenticated, "%v", err)
	}

	if r.Agents != h.Agents || r.API != h.API {
		if r, err = d.move(ctx, id, h); err != nil {
			return RelayWelcome{}, err
		}
	}
	if d.life.Err() == nil && d.notesNow(id) {
		d.noting.Go(func() { d.note(id, server, max(0, h.Hosts)) })
	}
	return RelayWelcome{Areas: r.Areas, Authorities: string(d.o.Authority.Bundle()), Servers: d.o.Servers()}, nil
}

// move stores where hosts reach a relay.
func (d *RelayDesk) move(ctx context.Context, id string, h RelayHello) (RelayRecord, error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	r, err := d.o.Store.ChangeRelay(ctx, id, func(r RelayRecord) (RelayRecord, error) {
		r.Agents, r.API = h.Agents, h.API
		return r, nil
	}, AuditEntry{})
	if err == nil {
		d.put(r)
	}
	return r, err
}

// noteEvery is how often it is recorded that a relay is here. Each time is a write.
const noteEvery = 10 * time.Second

// note records where a relay is. It does not hold up an answer: a relay without one takes the server for dead and closes the
// connections of its hosts, although only the database is away.
func (d *RelayDesk) note(id, server string, hosts int) {
	ctx, cancel := context.WithTimeout(d.life, noteEvery)
	defer cancel()
	if err := d.o.Store.SeeRelay(ctx, id, server, hosts); err != nil && d.life.Err() == nil { // the next one is noted
		d.o.Log.Warn("cannot note where a relay is", "relay", id, "err", err)
	}
}

// notesNow reports whether it is time to record that a relay is here.
func (d *RelayDesk) notesNow(id string) bool {
	now := d.o.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.seen[id]) < noteEvery {
		return false
	}
	d.seen[id] = now
	return true
}

// Remove removes a relay. Its connections are closed, and so are those of the hosts behind it.
func (d *RelayDesk) Remove(ctx context.Context, caller gozzard.Caller, id string) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	act := AuditEntry{At: d.o.Now(), Caller: caller, What: auditRelayRemove + id}
	if err := d.o.Store.RemoveRelay(ctx, id, act); err != nil {
		return err
	}
	d.change(func(relays map[string]RelayRecord) {
		delete(relays, id)
		delete(d.seen, id)
	})
	d.disconnect(id)
	return nil
}

// Relays lists the relays by name, as they are recorded now.
func (d *RelayDesk) Relays(ctx context.Context) ([]RelayRecord, error) { return d.o.Store.Relays(ctx) }
