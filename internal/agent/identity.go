package agent

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
)

const identityName = "agent-id"

// identity finds or makes the agent's id. A folder belongs to one agent for ever: its journal says what that agent has done.
func identity(dir string, j *journal.Journal, asked gozzard.AgentID) (gozzard.AgentID, error) {
	b, err := os.ReadFile(filepath.Join(dir, identityName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newIdentity(j, asked)
	case err != nil:
		return "", fmt.Errorf("cannot read agent id: %w", err)
	}
	kept := gozzard.AgentID(strings.TrimSpace(string(b)))
	if err := kept.Validate(); err != nil { // never become somebody else by a damaged file
		return "", fmt.Errorf("cannot use agent id in %s: %w", filepath.Join(dir, identityName), err)
	}
	if asked != "" && asked != kept {
		return "", fmt.Errorf("state folder %s belongs to agent %s, not to %s", dir, kept, asked)
	}
	return kept, nil
}

func newIdentity(j *journal.Journal, id gozzard.AgentID) (gozzard.AgentID, error) {
	if id == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails: it ends the program instead
		id = gozzard.AgentID(hex.EncodeToString(b[:]))
	}
	if err := id.Validate(); err != nil {
		return "", err
	}
	if err := j.ReplaceFile(identityName, []byte(id+"\n")); err != nil {
		return "", fmt.Errorf("cannot keep agent id: %w", err)
	}
	return id, nil
}
