package agentd

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/signing"
)

// ReadJoinFile reads the join.secret of a server: the secret that its agents join with, and the server's key.
func ReadJoinFile(path string) (secret string, key signing.Key, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", signing.Key{}, fmt.Errorf("cannot read the join secret: %w", err)
	}
	if err := atomicfile.CheckOwned(path); err != nil {
		return "", signing.Key{}, err
	}

	secret, word, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	if word == "" {
		return "", signing.Key{}, fmt.Errorf("%s does not name the server's key: an older version wrote it; "+
			"start the server, which completes it", path)
	}

	if key, err = signing.ParseKey(strings.TrimSpace(word)); err != nil {
		return "", signing.Key{}, fmt.Errorf("cannot use %s: %w", path, err)
	}

	return secret, key, nil
}

// openKeyRing opens the keys that the agent of a state folder accepts. A join file names one key. An agent that has
// received a newer key since then stays with the newer one: copies of join files grow old.
func openKeyRing(dir string, named signing.Key) (*signing.KeyRing, error) {
	keys, err := signing.OpenKeyRing(dir, nil)
	if err != nil {
		return nil, err
	}
	if named.Epoch > 0 && named.Epoch >= keys.Key().Epoch {
		if err := keys.Trust(named); err != nil {
			return nil, err
		}
	}

	if keys.Key().Epoch == 0 {
		return nil, errors.New("this host knows no key of its server")
	}

	return keys, nil
}
