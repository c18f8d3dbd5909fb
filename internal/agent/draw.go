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
)

// Identity gives the id of the agent whose state is in a folder, for parts that must know it before New: the one kept there, else a fresh one. New keeps
// the fresh one when it is given as Info.Agent.
func Identity(dir string) (gozzard.AgentID, error) {
	b, err := os.ReadFile(filepath.Join(dir, identityName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return drawID(), nil
	case err != nil:
		return "", fmt.Errorf("cannot read agent id: %w", err)
	}
	return gozzard.AgentID(strings.TrimSpace(string(b))), nil
}

func drawID() gozzard.AgentID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return gozzard.AgentID(hex.EncodeToString(b[:]))
}
