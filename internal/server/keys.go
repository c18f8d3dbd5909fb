package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/keyprogram"
	"github.com/gozzard/gozzard/internal/signing"
)

// The keys that can be in an external signer.
const (
	keySigning   = "signing"
	keyAuthority = "authority"
)

// minCertificateLife is the shortest life of a certificate: a host needs time to renew it.
const minCertificateLife = 5 * time.Second

// KeyOptions say where the keys of a server are and how long certificates of agents are valid.
type KeyOptions struct {
	Command string        // the external signer: a program and its arguments, apart by spaces; "": none
	Outside []string      // keys that are made in it: signing, authority
	Life    time.Duration // of the certificates of agents; 0: a day
}

// check finds settings that contradict each other.
func (o *KeyOptions) check() error {
	for _, name := range o.Outside {
		if name != keySigning && name != keyAuthority {
			return fmt.Errorf("--signer-keys %q: use signing, authority, or both", name)
		}
	}
	if o.Life != 0 && (o.Life < minCertificateLife || o.Life > 30*24*time.Hour) {
		return fmt.Errorf("--certificate-life %s: use a time from %s to 720h", o.Life, minCertificateLife)
	}
	return nil
}

// makes reports whether new keys of a kind are made in the external signer.
func (o *KeyOptions) makes(kind string) bool {
	return o.Command != "" && slices.Contains(o.Outside, kind)
}

// openKeys starts the external signer, if there is one, and opens the signing key.
func (s *Server) openKeys() (err error) {
	o := &s.options.Keys
	if err := o.check(); err != nil {
		return err
	}
	if o.Command != "" {
		p, err := keyprogram.Start(keyprogram.Options{Command: strings.Fields(o.Command), Log: s.options.Log})
		if err != nil {
			return fmt.Errorf("--signer-command: %w", err)
		}
		s.outside = p
		s.onClose("cannot end the external signer", p.Close)
	}

	s.signer, err = signing.NewSigner(signing.SignerOptions{Dir: s.options.Data, Outside: s.outside,
		MakeOutside: o.makes(keySigning)})
	if err != nil {
		return err
	}
	if outside, err := s.signer.IsOutside(); err == nil && !outside && o.makes(keySigning) {
		s.options.Log.Warn("the signing key is still in the data folder; " +
			"to move it to the external signer: gozzard key rotate signing")
	}
	return nil
}

// keyDesk answers callers about the keys of the server. It implements api.Keys.
type keyDesk struct{ s *Server }

// Keys implements api.Keys.
func (d keyDesk) Keys(ctx context.Context, online func(gozzard.AgentID) bool) (out client.Keys, err error) {
	for _, k := range d.s.signer.History() {
		out.Signing = append(out.Signing, client.SigningKey{Epoch: k.Key.Epoch, ID: k.Key.ID().String(), Made: client.At(k.At),
			Key: k.Key.String()})
	}
	if out.SigningExternal, err = d.s.signer.IsOutside(); err != nil {
		return out, err
	}

	r := d.s.trust.registry
	if r == nil {
		return out, nil
	}
	if d.s.keySync != nil { // hosts have shown more to other servers
		if err := r.ReadMoves(ctx); err != nil {
			return out, err
		}
	}
	move, err := d.move(ctx, r.AuthorityMove(), true, online)
	out.Authority = &move
	return out, err
}

// move counts the hosts of a rotation, and the servers that do not take part. running is false if all that run do.
func (d keyDesk) move(ctx context.Context, m enrol.AuthorityMove, running bool, online func(gozzard.AgentID) bool) (
	out client.AuthorityMove, err error) {
	if d.s.keySync != nil && m.Next != "" {
		out.Servers, err = d.s.keySync.withoutNext(ctx, running)
	}
	out = client.AuthorityMove{Authority: m.Current, Next: m.Next, Moved: len(m.Moved),
		PEM: string(d.s.trust.authority.Bundle()), Waiting: []gozzard.AgentID{}, Offline: []gozzard.AgentID{}, Servers: out.Servers}
	for _, agent := range m.Waiting {
		if online(agent) {
			out.Waiting = append(out.Waiting, agent)
		} else {
			out.Offline = append(out.Offline, agent)
		}
	}
	return out, err
}

// RotateSigning implements api.Keys.
func (d keyDesk) RotateSigning(ctx context.Context, caller gozzard.Caller) (out client.RotatedKey, err error) {
	s := d.s
	if s.keySync != nil {
		return s.keySync.rotate(ctx, caller)
	}
	old, next, err := s.signer.Rotate(func(k signing.Key) error {
		if s.joinFile == "" {
			return nil
		}
		_, err := keptJoinFile(s.joinFile, k)
		return err
	})
	if err != nil {
		return out, shown(err)
	}

	s.options.Log.Info("signing key rotated: hosts accept the new key with their next command", "key", next.ID().String(),
		"epoch", next.Epoch)
	out = client.RotatedKey{Epoch: next.Epoch, ID: next.ID().String(), Replaces: old.ID().String()}
	return out, s.store.NoteAct(ctx, enrol.AuditEntry{At: time.Now(), Caller: caller,
		What: "key:signing:rotate:" + next.ID().String()})
}

// RotateAuthority implements api.Keys.
func (d keyDesk) RotateAuthority(ctx context.Context, caller gozzard.Caller, online func(gozzard.AgentID) bool) (
	out client.AuthorityMove, err error) {
	r, err := d.registry()
	if err != nil {
		return out, err
	}
	rotate := r.RotateAuthority
	if d.s.keySync != nil {
		rotate = d.s.keySync.rotateAuthority
	}
	m, err := rotate(ctx, caller)
	if err != nil {
		return out, shown(err)
	}
	if err := d.s.renewCredentials(); err != nil {
		return out, err
	}
	return d.move(ctx, m, false, online)
}

// FinishAuthority implements api.Keys.
func (d keyDesk) FinishAuthority(ctx context.Context, caller gozzard.Caller, confirm int,
	online func(gozzard.AgentID) bool) (out client.AuthorityMove, err error) {
	r, err := d.registry()
	if err != nil {
		return out, err
	}
	var m enrol.AuthorityMove
	if d.s.keySync != nil {
		m, err = d.s.keySync.finishAuthority(ctx, caller, confirm)
	} else {
		m, err = r.FinishAuthority(ctx, enrol.FinishOptions{Caller: caller, Confirm: confirm})
	}
	if err != nil {
		return out, err
	}
	if err := d.s.renewCredentials(); err != nil {
		return out, err
	}
	m.Current, m.Next = m.Next, ""
	return d.move(ctx, m, false, online)
}

// shown is an error as an admin sees it: also one of the data folder or of the external signer, which the admin can mend.
func shown(err error) error {
	if gozzard.KindOf(err) != gozzard.ErrInternal {
		return err
	}
	return &gozzard.Error{Kind: gozzard.ErrConflict, Message: err.Error()}
}

// registry is the registry of enrolled hosts. Only a server with one has an authority that others know.
func (d keyDesk) registry() (*enrol.Registry, error) {
	if d.s.trust.registry == nil {
		return nil, gozzard.Errorf(gozzard.ErrConflict, "this server serves only agents on its own machine, "+
			"which know no authority: start it with --agent-listen on an address of the network, or --enrol")
	}
	return d.s.trust.registry, nil
}

// renewCredentials writes the present authorities into credentials.json, so that its owner still reaches the server.
func (s *Server) renewCredentials() error {
	path := filepath.Join(s.options.Data, "credentials.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var c Credentials
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return fmt.Errorf("cannot write the new authority to %s: %w", path, err)
	}
	if c.CA == "" {
		return nil
	}
	c.CA = s.authorityPEM()
	return c.Write(path)
}
