package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
)

// JoinOptions are the settings of `gozzard server join`.
type JoinOptions struct {
	Data      string // of the new server; it must be empty or missing
	Server    string // URL of the API of a server that runs
	TokenFile string
}

// Join gets the keys of an installation from one of its servers and makes the data folder of a new one. It returns the
// keys that are in an external signer, which it did not get. When it fails, the folder is empty.
func Join(ctx context.Context, o JoinOptions) (outside []string, err error) {
	token, err := readServerToken(o.TokenFile)
	if err != nil {
		return nil, err
	}

	// Do everything that can fail on this machine before the token is used.
	if err := newFolder(o.Data); err != nil {
		return nil, err
	}
	if err := atomicfile.Probe(o.Data); err != nil {
		return nil, err
	}

	keys, err := enrol.AskKeys(ctx, o.Server, token)
	if err != nil {
		return nil, err
	}
	return keys.Outside, writeKeys(o.Data, &keys, token.Pin)
}

// readServerToken reads a token that no other account can read.
func readServerToken(path string) (enrol.Token, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return enrol.Token{}, fmt.Errorf("cannot read the token: %w", err)
	}
	if err := atomicfile.Check(path); err != nil {
		return enrol.Token{}, err
	}
	return enrol.ParseServerToken(string(b))
}

// newFolder makes a folder for keys. One with content belongs to a server that is there already.
func newFolder(data string) error {
	list, err := os.ReadDir(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(data, 0o700); err != nil {
			return fmt.Errorf("cannot make the data folder: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the data folder: %w", err)
	case len(list) > 0:
		return fmt.Errorf("the data folder %s is not empty, it has %s: choose another folder for the new server. Nothing was changed "+
			"and the token was not used", data, list[0].Name())
	}
	if err := os.Chmod(data, 0o700); err != nil {
		return fmt.Errorf("cannot close the data folder to other accounts: %w", err)
	}
	return nil
}

// writeKeys writes the keys into a new data folder. record.json is the last file: without it the server does not start on
// the record of the installation.
func writeKeys(data string, keys *enrol.ServerKeys, pin string) (err error) {
	files := []struct {
		name string
		text []byte
	}{{enrol.KeyFile, keys.Authority}, {enrol.NextKeyFile, keys.NextAuthority}, {signing.SignerFile, keys.Signing}}
	defer func() {
		if err == nil {
			return
		}
		for _, f := range files {
			if e := os.Remove(filepath.Join(data, f.name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}()

	for _, f := range files {
		if len(f.text) == 0 {
			continue
		}
		if err := atomicfile.Write(filepath.Join(data, f.name), f.text); err != nil {
			return fmt.Errorf("cannot store the keys: %w", err)
		}
	}

	// They must be those of the installation that the token is for.
	got, err := enrol.ReadPin(data)
	if err != nil {
		return err
	}
	if got != pin {
		return errors.New("the server sent the key of another authority than that of the token")
	}
	if _, err := signing.Keys(data); err != nil {
		return err
	}
	return backup.Place{Installation: keys.Installation}.Write(data)
}
