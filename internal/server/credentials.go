package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// Credentials is the file by which a caller finds and uses a server.
type Credentials struct {
	URL      string `json:"url"`
	AppCode  string `json:"bk_app_code,omitempty"`
	Secret   string `json:"bk_app_secret,omitempty"`
	Username string `json:"bk_username,omitempty"`
	Token    string `json:"bk_token,omitempty"` // of a person, with an app or without
	// CA is the authority of the server's certificate in PEM; "": those that the system trusts.
	CA string `json:"ca,omitempty"`
}

// moveCredentials writes the present address of the server into its credentials.json. A file that names another machine
// was changed by a person and stays as it is.
func (s *Server) moveCredentials(context.Context) error {
	path := filepath.Join(s.options.Data, "credentials.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the credentials of the first app: %w", err)
	}

	var c Credentials
	if err := json.Unmarshal(b, &c); err != nil {
		return nil // a person changed it; callers that use the file are answered with what is wrong
	}
	at, err := url.Parse(c.URL)
	if err != nil || !isLoopbackAddr(net.JoinHostPort(at.Hostname(), "0")) || c.URL == s.URL() && c.CA == s.authorityPEM() {
		return nil
	}

	before := c.URL
	c.URL, c.CA = s.URL(), s.authorityPEM()
	s.options.Log.Info("credentials.json has the new address of this server", "file", path, "url", c.URL, "before", before)
	return c.Write(path)
}

// Write writes the file, readable by its owner only.
func (c Credentials) Write(path string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return atomicfile.Write(path, append(b, '\n'))
}
