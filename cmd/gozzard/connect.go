package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/server"
)

// credentials is the file with the address of a server and the secret of a caller.
type credentials = server.Credentials

// errNoCredentials: the caller names no credentials, and there are none at the usual places.
var errNoCredentials = errors.New("no credentials: give --credentials FILE or GOZZARD_CREDENTIALS, or run in the folder " +
	"of `gozzard dev`, which has ./data/dev.json, or as root on the machine of a server")

// withClient connects to the server and runs f.
func (env *cliEnv) withClient(f func(*client.Client) error) error {
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return withExitCode(f(c))
}

// connect makes a client with the address and the credentials of the caller. A flag wins over the environment, and
// the environment wins over the file.
func (env *cliEnv) connect() (*client.Client, error) {
	return env.newClient(false)
}

// newClient is connect. A caller that is not logged in yet is anonymous: it needs the address only.
func (env *cliEnv) newClient(anonymous bool) (*client.Client, error) {
	// Find the credentials file and the address.
	path, url := env.credentials, env.url
	if v, ok := env.lookup("GOZZARD_CREDENTIALS"); ok && path == "" {
		path = v
	}
	if v, ok := env.lookup("GOZZARD_URL"); ok && url == "" {
		url = v
	}

	// Read the file.
	path, b, err := env.readFile(path)
	if errors.Is(err, errNoCredentials) && anonymous && url != "" {
		b, err = []byte("{}"), nil
	}
	if err != nil {
		return nil, err
	}

	var file credentials
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, usage("cannot read the credentials in %s: %w", path, err)
	}
	if url == "" {
		url = file.URL
	}

	if env.ca != "" { // of --ca-file
		file.CA = env.ca
	}

	// Reject incomplete credentials: an app needs its secret, and a token is enough alone.
	caller := client.Credentials{AppCode: file.AppCode, AppSecret: file.Secret, Username: file.Username,
		Token: file.Token, CA: file.CA}
	complete := caller.AppCode != "" && caller.AppSecret != "" || caller.AppCode == "" && caller.Token != ""
	if url == "" || !complete && !anonymous {
		return nil, usage("credentials in %s: url, and bk_app_code with bk_app_secret or bk_token alone are required",
			path)
	}

	if anonymous {
		caller = client.Credentials{CA: file.CA}
	}

	// Make the client. Commands that write credentials files copy the authority into them.
	env.ca = file.CA
	c, err := client.New(url, caller)
	return c, withExitCode(err)
}

// readFile reads the credentials file that the caller names, or the one at a usual place.
func (env *cliEnv) readFile(named string) (path string, b []byte, err error) {
	path, mode := named, fs.FileMode(0)
	if named != "" {
		b, mode, err = readCredentials(named, false)
	} else {
		path, b, mode, err = findCredentials(usualPlaces())
	}

	switch {
	case errors.Is(err, fs.ErrNotExist) && named == "":
		return "", nil, usage("%w", errNoCredentials)
	case errors.Is(err, errForeign):
		return path, nil, usage("credentials in %s: another account has made the file or can change it; if you trust it, give "+
			"--credentials %[1]s", path)
	case errors.Is(err, fs.ErrPermission):
		if folder := closedFolder(path); folder != "" {
			return path, nil, usage("cannot read the credentials file %s: this account may not enter the folder %s: give --credentials "+
				"FILE, or run in another folder", path, folder)
		}
		return path, nil, usage("cannot read the credentials file: %w", err)
	case err != nil:
		return path, nil, usage("cannot read the credentials file: %w", err)
	}

	if runtime.GOOS != "windows" && mode.IsRegular() && mode.Perm()&0o044 != 0 {
		env.remark("gozzard: other accounts can read the secret in %s: run chmod 600 %[1]s", printable(path))
	}
	return path, b, nil
}

// closedFolder is the highest folder of a path that this account may not enter, "" if it may enter all.
func closedFolder(path string) (closed string) {
	path, err := filepath.Abs(path)
	if err != nil { // the current folder is closed itself
		return cmp.Or(os.Getenv("PWD"), ".")
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, "x")); errors.Is(err, fs.ErrPermission) {
			closed = dir
		}
		if dir == filepath.Dir(dir) {
			return closed
		}
	}
}
