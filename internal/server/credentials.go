package server

import (
	"encoding/json"
	"fmt"

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

// Write writes the file, readable by its owner only.
func (c Credentials) Write(path string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return atomicfile.Write(path, append(b, '\n'))
}
