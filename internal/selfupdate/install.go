package selfupdate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/internal/release"
)

// tryTime is how long a new program may take to print its version.
const tryTime = 30 * time.Second

// Source is where a release comes from. Nothing that it provides is trusted.
type Source interface {
	Manifest(ctx context.Context) (manifest, signature []byte, err error)
	Program(ctx context.Context, f release.File) (io.ReadCloser, error)
}

// Folder is a release in a folder, as `make release` makes it.
type Folder string

// Manifest implements Source.
func (d Folder) Manifest(context.Context) (manifest, signature []byte, err error) {
	if manifest, err = readSmall(filepath.Join(string(d), release.ManifestName)); err != nil {
		return nil, nil, err
	}
	signature, err = readSmall(filepath.Join(string(d), release.SignatureName))
	if errors.Is(err, fs.ErrNotExist) { // the check then reports that the release is not signed
		return manifest, nil, nil
	}
	return manifest, signature, err
}

// Program implements Source.
func (d Folder) Program(_ context.Context, f release.File) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(d), f.Name))
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, release.MaxManifest+1))
}

// Request restricts what is installed.
type Request struct {
	Version string // the only accepted version; "" accepts any
	Again   bool   // the owner allows a version that was rolled back here
}

// Install checks a release and installs its program. Nothing is replaced before everything is checked. It returns the
// version that was installed.
func (u *Updater) Install(ctx context.Context, src Source, w Request) (string, error) {
	if !InPlace {
		return "", fmt.Errorf(
			"updates in place are not possible on %s: stop the agent, replace its program and start it", Platform())
	}

	// Allow one update at a time.
	unlock, err := lockPath(filepath.Join(u.o.Dir, busyName), false)
	if err != nil {
		return "", err
	}
	defer unlock()

	// Check the manifest.
	key, err := u.o.Key()
	if err != nil {
		return "", err
	}
	manifest, signature, err := src.Manifest(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot get the release: %w", err)
	}
	m, err := release.Verify(key, manifest, signature)
	if err != nil {
		return "", err
	}
	if w.Version != "" && w.Version != m.Version {
		return "", fmt.Errorf("the release is %s, not %.80s", m.Version, w.Version)
	}
	file, err := u.check(m, w.Again)
	if err != nil {
		return "", err
	}

	// Get the program.
	from, err := src.Program(ctx, file)
	if err != nil {
		return "", fmt.Errorf("cannot get the release: %w", err)
	}
	defer from.Close()
	staged, err := u.stage(file, from)
	if err != nil {
		return "", err
	}

	// Try it and install it.
	if err = u.try(ctx, staged, m.Version); err == nil {
		err = u.place(m, staged)
	}
	if err != nil {
		if gone := os.Remove(staged); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return "", err
	}

	u.o.Log.Info("new program installed", "new", m.Version, "running", u.o.Version, "file", u.o.Program)
	return m.Version, nil
}

// check decides whether a release may be installed, from what the host knows and remembers.
func (u *Updater) check(m *release.Manifest, again bool) (release.File, error) {
	s, err := ReadState(u.o.Dir)
	if err != nil {
		return release.File{}, err
	}
	if s.Trial != nil {
		return release.File{}, fmt.Errorf("release %s is on trial: wait until the trial ends", s.Trial.Version)
	}
	if why := s.failedReason(m.Version); why != "" && !again {
		return release.File{}, &RolledBack{m.Version, why}
	}
	if err := m.Admit(u.o.Now(), u.o.Version, s.Highest, u.o.AllowDowngrade()); err != nil {
		return release.File{}, err
	}
	return m.For(Platform())
}

// RolledBack says that a version was tried on this host before and rolled back.
type RolledBack struct{ Version, Reason string }

func (r *RolledBack) Error() string {
	return fmt.Sprintf("release %s was tried here and rolled back (%s); to try it again: gozzard agent update --again",
		r.Version, r.Reason)
}

// try starts a new program, whose signature was checked, to find out whether it runs here, has the version of its
// manifest, and understands the arguments of the agent.
func (u *Updater) try(ctx context.Context, program, version string) error {
	// Check the version.
	said, err := SaysVersion(ctx, program)
	if err != nil {
		return fmt.Errorf("the new program does not work here: %w", err)
	}
	if said != version {
		return fmt.Errorf("the new program says that it is version %.80q, its manifest says %s", said, version)
	}
	if len(u.o.Args) == 0 {
		return nil
	}

	// Check the arguments.
	_, err = output(ctx, program, append(slices.Clone(u.o.Args), "--help")...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, clip(string(bytes.TrimSpace(exit.Stderr))))
	}
	if err != nil {
		return fmt.Errorf("the new program does not understand how this agent was started: %w", err)
	}
	return nil
}

// SaysVersion returns the version that a program file prints.
func SaysVersion(ctx context.Context, program string) (string, error) {
	out, err := output(ctx, program, "version")
	if err != nil {
		return "", fmt.Errorf("cannot run it: %w", err)
	}
	words := bytes.Fields(out)
	if len(words) < 2 || string(words[0]) != "gozzard" {
		return "", fmt.Errorf("it does not say that it is gozzard: %.80q", out)
	}
	return string(words[1]), nil
}

// output runs a program that was just written. If this process starts a command at the same moment, the child may
// still have the file open for writing until it executes its own program. The kernel then reports that the file is
// busy, so output tries again.
func output(ctx context.Context, program string, args ...string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()

	for {
		out, err = exec.CommandContext(ctx, program, args...).Output()
		if !errors.Is(err, syscall.ETXTBSY) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
