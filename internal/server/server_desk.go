package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
)

// serverDesk gives the keys of this server to others that share its record; nil: there are none.
func (s *Server) serverDesk() *enrol.ServerDesk {
	if s.cluster == nil || s.trust.registry == nil {
		return nil
	}
	return enrol.NewServerDesk(enrol.ServerDeskOptions{Pin: s.trust.authority.Pin, Keys: s.serverKeys, Rights: s.rightsOf,
		Note: s.store.NoteAct, Barred: s.keysBarred, Log: s.options.Log})
}

// rightsOf are the present rights of a caller.
func (s *Server) rightsOf(c gozzard.Caller) *gozzard.Rights {
	return s.accounts.Directory().RightsOf(c)
}

// keysBarred returns why no keys are given to other servers. They are worth more than any act that needs a second person.
func (s *Server) keysBarred() error {
	if len(s.options.SecondPerson.For) == 0 {
		return nil
	}
	return gozzard.Errorf(gozzard.ErrConflict, "this server runs with --second-person, and one person alone could take its keys "+
		"with a token: copy ca.key, signing.key and record.json of its data folder to the new server by hand, on its machine")
}

// serverKeys are the keys of the installation as they are in the data folder.
func (s *Server) serverKeys() (k enrol.ServerKeys, err error) {
	data := s.options.Data
	place, err := backup.ReadPlace(data)
	if err != nil {
		return k, err
	}
	k.Installation = place.Installation

	// The files.
	if k.Authority, err = enrol.ReadKeyFile(data, false); err != nil {
		return k, fmt.Errorf("cannot read the authority: %w", err)
	}
	if k.NextAuthority, err = enrol.ReadKeyFile(data, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k, fmt.Errorf("cannot read the next authority: %w", err)
	}
	if k.Signing, err = os.ReadFile(filepath.Join(data, signing.SignerFile)); err != nil {
		return k, fmt.Errorf("cannot read the signing key: %w", err)
	}

	// What the files do not have.
	outside, err := s.signer.IsOutside()
	if err != nil {
		return k, err
	}
	if outside {
		k.Outside = append(k.Outside, keySigning)
	}
	if s.trust.authority.IsOutside() {
		k.Outside = append(k.Outside, keyAuthority)
	}
	return k, nil
}
