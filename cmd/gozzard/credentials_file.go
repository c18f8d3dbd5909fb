package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxCredentials is far above the size of a credentials file.
const maxCredentials = 1 << 20

// usualPlace is a file in which a server on this machine keeps credentials.
type usualPlace struct {
	path string
	// Only root can make a file at this place, or an account that root has given the folder to. The other places are
	// relative: in a folder such as /tmp every account can make one.
	ofSystem bool
}

// usualPlaces are the places of credentials that nobody has to name, the first one first.
func usualPlaces() []usualPlace {
	return []usualPlace{
		{filepath.Join("data", "dev.json"), false},         // gozzard dev
		{filepath.Join("data", "credentials.json"), false}, // gozzard server
		{"/var/lib/gozzard/credentials.json", true},        // the unit of the package
	}
}

// findCredentials reads the first credentials file that is at one of the usual places. The error is fs.ErrNotExist if
// there is none.
func findCredentials(places []usualPlace) (path string, content []byte, mode fs.FileMode, err error) {
	for _, p := range places {
		b, mode, err := readCredentials(p.path, !p.ofSystem)
		switch {
		case errors.Is(err, fs.ErrNotExist), p.ofSystem && errors.Is(err, fs.ErrPermission):
			continue
		}
		return p.path, b, mode, err
	}
	return "", nil, 0, fs.ErrNotExist
}

// errForeign: another account has made the file, so it decides which server gets the words of the caller.
var errForeign = errors.New("another account has made it or can change it")

// readCredentials reads a file. With own it accepts only what root or the caller has made and nobody else can change.
// It judges the open file, so a file that is swapped meanwhile is not read.
func readCredentials(path string, own bool) ([]byte, fs.FileMode, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // it was only read

	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if own && !ownFile(info) {
		return nil, 0, errForeign
	}

	b, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	if err == nil && len(b) > maxCredentials {
		err = fmt.Errorf("it has more than %d bytes", maxCredentials)
	}
	return b, info.Mode(), err
}
