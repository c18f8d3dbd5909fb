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

// Identity returns the id of the agent that owns a state folder, for parts that need it before New. It is the id
// stored in the folder, or else a new one. New stores the new one if it gets it as Info.Agent.
func Identity(dir string) (gozzard.AgentID, error) {
	id, err := storedID(dir)
	if err != nil || id != "" {
		return id, err
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return gozzard.AgentID(hex.EncodeToString(b[:])), nil
}

// storedID reads the id in a state folder. It returns "" if there is none yet.
func storedID(dir string) (gozzard.AgentID, error) {
	path := filepath.Join(dir, identityName)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read the agent id: %w", err)
	}

	id := gozzard.AgentID(strings.TrimSpace(string(b)))
	if err := id.Validate(); err != nil { // the file is damaged: a new id would make this another agent
		return "", fmt.Errorf("cannot use the agent id in %s: %w", path, err)
	}
	return id, nil
}

// establishID binds a state folder to an agent. A folder belongs to one agent forever, because its journal says what
// that agent has done.
func establishID(dir string, j *journal.Journal, asked gozzard.AgentID) (gozzard.AgentID, error) {
	// Use the stored id.
	stored, err := storedID(dir)
	switch {
	case err != nil:
		return "", err
	case stored != "" && asked != "" && asked != stored:
		return "", fmt.Errorf("state folder %s belongs to agent %s, not to %s", dir, stored, asked)
	case stored != "":
		return stored, nil
	}

	// Make a new id.
	if asked == "" {
		if asked, err = Identity(dir); err != nil {
			return "", err
		}
	}
	if err := asked.Validate(); err != nil {
		return "", err
	}

	return asked, storeID(j, asked)
}

// storeID writes the id into the state folder.
func storeID(j *journal.Journal, id gozzard.AgentID) error {
	if err := j.ReplaceFile(identityName, []byte(id+"\n")); err != nil {
		return fmt.Errorf("cannot store the agent id: %w", err)
	}
	return nil
}
