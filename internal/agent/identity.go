package agent

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
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

// The files of the identity. The checksum is beside the id and not in its file, because earlier versions read that
// file, and it has the form of sha256sum, so that a person can make it.
const (
	identityName = "agent-id"
	checksumName = "agent-id.sha256"
	madeIDSize   = 16 // bytes of an id that an agent makes
)

// Identity returns the id of the agent that owns a state folder, for parts that need it before New. It is the id
// stored in the folder, or else a new one. New stores the new one if it gets it as Info.Agent.
func Identity(dir string) (gozzard.AgentID, error) {
	id, err := storedID(dir, "")
	if err != nil || id != "" {
		return id, err
	}
	var b [madeIDSize]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return gozzard.AgentID(hex.EncodeToString(b[:])), nil
}

// storedID reads the id in a state folder. It returns "" if there is none yet. A damaged id is an error, because with
// another id this would be another agent. known is the id by another source, such as the certificate of the host, or "".
func storedID(dir string, known gozzard.AgentID) (gozzard.AgentID, error) {
	// Read the file.
	path := filepath.Join(dir, identityName)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read the agent id: %w", err)
	}
	id := gozzard.AgentID(strings.TrimSpace(string(b)))
	if err := id.Validate(); err != nil {
		return "", fmt.Errorf("cannot use the agent id in %s: %w; %s", path, err, mendID)
	}

	// Verify it.
	sum, err := os.ReadFile(filepath.Join(dir, checksumName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && (isMade(id) || id == known): // an earlier version stored it
		return id, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("cannot use the agent id in %s: %q is not one that an agent makes, and %s does not exist: "+
			"the file may be damaged; %s", path, id, checksumName, mendID)
	case err != nil:
		return "", fmt.Errorf("cannot verify the agent id: %w", err)
	case !bytes.Equal(bytes.Fields(append(sum, " -"...))[0], checksumOf(b)):
		return "", fmt.Errorf("cannot use the agent id in %s: %q does not fit the checksum in %s, so one of the two files "+
			"is damaged; %s", path, id, checksumName, mendID)
	}
	return id, nil
}

// mendID is what a person can do about a damaged id.
const mendID = "put the file back from a copy of the state folder, or write the id that the server shows for this " +
	"host into it, then run in the folder: sha256sum agent-id > agent-id.sha256"

// isMade reports whether an id has the form of those that agents make.
func isMade(id gozzard.AgentID) bool {
	b, err := hex.DecodeString(string(id))
	return err == nil && len(b) == madeIDSize && strings.ToLower(string(id)) == string(id)
}

// checksumOf is the checksum of the file of an id.
func checksumOf(file []byte) []byte {
	sum := sha256.Sum256(file)
	return hex.AppendEncode(nil, sum[:])
}

// establishID binds a state folder to an agent. A folder belongs to one agent forever, because its journal says what
// that agent has done. named is the agent that the journal names, "" if it names none.
func establishID(dir string, j *journal.Journal, asked, named gozzard.AgentID) (gozzard.AgentID, error) {
	// Compare the stored id with the other sources.
	stored, err := storedID(dir, asked)
	switch {
	case err != nil:
		return "", err
	case stored != "" && named != "" && stored != named:
		return "", fmt.Errorf("cannot use the agent id in %s: it is %s, but the journal is of agent %s; %s",
			filepath.Join(dir, identityName), stored, named, mendID)
	case stored != "" && asked != "" && asked != stored:
		return "", fmt.Errorf("state folder %s belongs to agent %s, not to %s", dir, stored, asked)
	case stored == "" && named != "" && asked != "" && asked != named:
		return "", fmt.Errorf("the journal in state folder %s is of agent %s, not of %s: the file %s is missing; %s",
			dir, named, asked, identityName, mendID)
	case stored != "":
		return stored, storeSum(dir, j)
	}

	// Take the one of the journal, or make a new one.
	if asked == "" {
		asked = named
	}
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

// storeID writes the id into the state folder. The checksum is first: without it, an id that no agent makes would be
// refused.
func storeID(j *journal.Journal, id gozzard.AgentID) error {
	file := []byte(id + "\n")
	sum := fmt.Appendf(nil, "%s  %s\n", checksumOf(file), identityName)
	if err := j.ReplaceFile(checksumName, sum); err != nil {
		return fmt.Errorf("cannot store the checksum of the agent id: %w", err)
	}
	if err := j.ReplaceFile(identityName, file); err != nil {
		return fmt.Errorf("cannot store the agent id: %w", err)
	}
	return nil
}

// storeSum adds the checksum to an id of an earlier version.
func storeSum(dir string, j *journal.Journal) error {
	if _, err := os.Lstat(filepath.Join(dir, checksumName)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(dir, identityName))
	if err != nil {
		return fmt.Errorf("cannot read the agent id: %w", err)
	}
	err = j.ReplaceFile(checksumName, fmt.Appendf(nil, "%s  %s\n", checksumOf(b), identityName))
	if err != nil && !errors.Is(err, journal.ErrNoSpace) { // the next start does it
		return fmt.Errorf("cannot store the checksum of the agent id: %w", err)
	}
	return nil
}
