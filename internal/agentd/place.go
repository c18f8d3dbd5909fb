package agentd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/release"
)

// An agent of root with its state below systemState is an installed one. Its policy is in systemFolder, where the unit
// of the agent lets no command write. A state folder elsewhere has its policy inside.
const (
	systemState  = "/var/lib/"
	systemFolder = "/etc/gozzard"
)

// isSystem reports whether the policy of a state folder belongs into systemFolder.
func isSystem(data string, own host.Privileges) bool {
	return filepath.Separator == '/' && own.Mode == gozzard.ModeRoot && strings.HasPrefix(data, systemState)
}

// Find returns the path of the policy of an agent. A policy in the state folder of an earlier installation counts as
// long as there is none in the place for policies.
func (o PolicyOptions) Find(data string, own host.Privileges) (string, error) {
	if o.File != "" {
		return o.File, nil
	}
	data, err := filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("cannot find the state folder: %w", err)
	}

	inState := filepath.Join(data, policy.FileName)
	if !isSystem(data, own) {
		return inState, nil
	}
	inSystem := filepath.Join(systemFolder, policy.FileName)
	if exists(inState) && !exists(inSystem) {
		return inState, nil
	}
	return inSystem, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// create writes the policy of a host that has none, and returns its path. Where the place for policies cannot be
// written, as in some containers, the state folder has to do.
func (o PolicyOptions) create(data string, own host.Privileges) (path string, made bool, err error) {
	if path, err = o.Find(data, own); err != nil || o.File != "" && !o.Fit {
		return path, false, err
	}
	if filepath.Dir(path) == systemFolder {
		err = os.MkdirAll(systemFolder, 0o755)
		if err == nil {
			made, err = o.firstPolicy(path)
		}
		if made && err == nil { // an agent of another account must be able to read it, and it is no secret
			err = os.Chmod(path, 0o644)
		}
		if err == nil || o.File != "" || exists(path) { // one that exists counts, also if it is not valid
			return path, made, err
		}
		path = filepath.Join(data, policy.FileName)
	}
	made, err = o.firstPolicy(path)
	return path, made, err
}

// keep remembers the policies that create may write, and returns what puts them back.
func (o PolicyOptions) keep(data string, own host.Privileges) (undo func() error, err error) {
	path, err := o.Find(data, own)
	if err != nil {
		return nil, err
	}
	before := map[string][]byte{} // nil: there is no file
	for _, p := range []string{path, filepath.Join(data, policy.FileName)} {
		b, err := os.ReadFile(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot read the policy of this host: %w", err)
		}
		before[p] = b
	}

	return func() (err error) {
		for p, b := range before {
			now, readErr := os.ReadFile(p)
			switch {
			case errors.Is(readErr, fs.ErrNotExist) && b == nil, readErr == nil && b != nil && bytes.Equal(now, b):
			case b == nil:
				err = errors.Join(err, os.Remove(p))
			case filepath.Dir(p) == systemFolder:
				err = errors.Join(err, atomicfile.WritePublic(p, b))
			default:
				err = errors.Join(err, atomicfile.Write(p, b))
			}
		}
		if err != nil {
			err = fmt.Errorf("cannot put the policy back as it was: %w", err)
		}
		return err
	}, nil
}

// Unguarded says how to move a policy that the commands that it limits could change, or "".
func Unguarded(path, data string, p *policy.Policy, own host.Privileges) string {
	data, err := filepath.Abs(data)
	if err != nil || filepath.Dir(path) != data || !p.AllowRoot && own.Mode == gozzard.ModeRoot && !isSystem(data, own) {
		return ""
	}
	why := "commands of the agent's account can change this policy, because it is in the state folder; as root, run: " +
		"install -D -m 0644 " + path + " " + filepath.Join(systemFolder, policy.FileName) + " && rm " + path
	if key := filepath.Join(data, releaseKeyFile); exists(key) {
		why += " && mv " + key + " " + systemFolder
	}
	if !isSystem(data, own) {
		why = fmt.Sprintf("%s; then start the agent with --policy %s", why, filepath.Join(systemFolder, policy.FileName))
	}
	return why
}

// warn logs what the owner of the host should know about the place of the policy.
func (o PolicyOptions) warn(path, data string, p *policy.Policy, own host.Privileges, log *slog.Logger) {
	if why := Unguarded(path, data, p, own); why != "" {
		log.Warn("policy is in the state folder: "+why, "file", path)
	}
	if old := filepath.Join(data, policy.FileName); o.File == "" && old != path && exists(old) {
		log.Warn("there are two policies; the one in the state folder has no effect, remove it", "file", path,
			"without_effect", old)
	}
}

// releaseKeyPath is where the release key of a host is: where its policy says, else beside the policy.
func releaseKeyPath(path string, p *policy.Policy) string {
	if p.ReleaseKey != "" {
		return p.ReleaseKey
	}
	return filepath.Join(filepath.Dir(path), releaseKeyFile)
}

// digest identifies the policy file of a host and its release key, as they are on disk: the SHA-256 of the policy, and
// behind a slash the one of the key, if there is a key. A file that cannot be read is named as such.
func (a *Agent) digest() string {
	if a.rules == nil || a.policyFile == nil {
		return ""
	}
	trust := policy.TrustBounds(a.own.Mode)
	text, err := digestOf(trust, a.policyFile.Path(), policy.MaxSize)
	key := releaseKeyPath(a.policyFile.Path(), a.policyFile.Current())
	if exists(key) {
		sum, keyErr := digestOf(trust, key, release.MaxManifest)
		text, err = text+"/"+sum, errors.Join(err, keyErr)
	}

	// Without descriptors nothing is known about the files, so they count as they were.
	if before := a.reported.Load(); before != nil && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) {
		return *before
	}
	return text
}

// policyFault is why the policy file of the host is not in effect, or nil.
func (a *Agent) policyFault() error {
	if a.policyFile == nil {
		return nil
	}
	return a.policyFile.Fault()
}

// watchEvery is how often the policy is compared with what the server knows about it.
const watchEvery = 5 * time.Second

// watchPolicy informs the server when the policy or the release key was changed.
func (a *Agent) watchPolicy(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for known := a.digest(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := a.digest()
		if now != known {
			a.options.Log.Warn("the policy or the release key of this host was changed", "file", a.policyFile.Path(),
				"digest", now, "before", known)
			known = now
		}
		if sent := a.reported.Load(); sent != nil && *sent != now {
			a.agent.Introduce() // does nothing while there is no session; then the next one describes the host
		}
	}
}

func digestOf(trust policy.Trust, path string, max int64) (string, error) {
	b, err := trust.Read(path, max)
	if err != nil {
		return "unreadable", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
