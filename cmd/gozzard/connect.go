package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/server"
)

// connect finds the server and the credentials: flag before environment before file.
func (env *cliEnv) connect() (*client.Client, error) {
	return env.dial(false)
}

// dial is connect; with anonymous for somebody who is yet to log in, who needs an address only.
func (env *cliEnv) dial(anonymous bool) (*client.Client, error) {
	path, url := env.credentials, env.url
	if v, ok := env.lookup("GOZZARD_CREDENTIALS"); ok && path == "" {
		path = v
	}
	if v, ok := env.lookup("GOZZARD_URL"); ok && url == "" {
		url = v
	}

	named := path != ""
	if !named {
		path = filepath.Join("data", "dev.json")
	}

	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named && anonymous && url != "" {
		b, err = []byte("{}"), nil
	}
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, usage("no credentials: give --credentials FILE or GOZZARD_CREDENTIALS, or run in the folder of `gozzard dev`, which has ./data/dev.json")
	}
	if err != nil {
		return nil, usage("cannot read the credentials file: %w", err)
	}

	var file credentials
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, usage("cannot read the credentials in %s: %w", path, err)
	}
	if url == "" {
		url = file.URL
	}

	who := client.Credentials{AppCode: file.AppCode, AppSecret: file.Secret, Username: file.Username,
		Token: file.Token, CA: file.CA}
	complete := who.AppCode != "" && who.AppSecret != "" || who.AppCode == "" && who.Token != ""
	if url == "" || !complete && !anonymous {
		return nil, usage("credentials in %s: url, and bk_app_code with bk_app_secret or bk_token alone are required",
			path)
	}

	if anonymous {
		who = client.Credentials{CA: file.CA}
	}

	env.ca = file.CA
	c, err := client.New(url, who)
	return c, served(err)
}

// withClient runs something with a connection to the server.
func (env *cliEnv) withClient(f func(*client.Client) error) error {
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return served(f(c))
}

// credentials is the file by which a caller finds and uses a server.
type credentials = server.Credentials
