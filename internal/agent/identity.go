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

// Identity gives the id of the agent whose state is in a folder, for parts that must know it before New: the one
// kept there, else a fresh one, which New keeps when it is given as Info.Agent.
func Identity(dir string) (gozzard.AgentID, error) {
	id, err := keptID(dir)
	if err != nil || id != "" {
		return id, err
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return gozzard.AgentID(hex.EncodeToString(b[:])), nil
}

// keptID reads the id of a folder, "" when it has none yet.
func keptID(dir string) (gozzard.AgentID, error) {
	path := filepath.Join(dir, identityName)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read agent id: %w", err)
	}

	id := gozzard.AgentID(strings.TrimSpace(string(b)))
	if err := id.Validate(); err != nil { // never become somebody else by a damaged file
		return "", fmt.Errorf("cannot use agent id in %s: %w", path, err)
	}

	return id, nil
}

// settleID makes a folder an agent's. It belongs to one agent for ever: its journal says what that agent has done.
func settleID(dir string, j *journal.Journal, asked gozzard.AgentID) (gozzard.AgentID, error) {
	kept, err := keptID(dir)
	switch {
	case err != nil:
		return "", err
	case kept != "" && asked != "" && asked != kept:
		return "", fmt.Errorf("state folder %s belongs to agent %s, not to %s", dir, kept, asked)
	case kept != "":
		return kept, nil
	}

	if asked == "" {
		if asked, err = Identity(dir); err != nil {
			return "", err
		}
	}

	if err := asked.Validate(); err != nil {
		return "", err
	}
	if err := j.ReplaceFile(identityName, []byte(asked+"\n")); err != nil {
		return "", fmt.Errorf("cannot keep agent id: %w", err)
	}

	return asked, nil
}
