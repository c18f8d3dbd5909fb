package host

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/supervise"
)

// variables are those of the definition: of its file, then its own, which replace them. Names that the policy of the host
// forbids are rejected: a file may have changed since the definition was checked.
func (h *Host) variables(r supervise.Run, runAs account, cred *syscall.Credential) ([]string, error) {
	all := map[string]string{}
	if file := r.Spec.Exec.EnvFile; file != "" {
		text, err := h.readEnvFile(file, runAs, cred)
		if err == nil {
			err = parseEnvFile(text, all)
		}
		if err != nil {
			return nil, fmt.Errorf("env_file %s: %w", file, err)
		}
	}
	maps.Copy(all, r.Spec.Exec.Env)

	env := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if h.programs != nil {
			if err := h.programs.Variable(name); err != nil {
				return nil, err
			}
		}
		env = append(env, name+"="+all[name])
	}
	return env, nil
}

// readEnvFile reads a file of variables with the rights of the account, so that a definition cannot show an account what it
// may not read. The file is checked as pid files are: it is opened without read access first.
func (h *Host) readEnvFile(path string, runAs account, cred *syscall.Credential) (text []byte, err error) {
	err = asAccount(cred, func() (err error) {
		text, err = h.openEnvFile(path, runAs)
		return err
	})
	return text, err
}

func (h *Host) openEnvFile(path string, runAs account) ([]byte, error) {
	// Open it without read access.
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()

	// Reject a file that is not trustworthy.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return nil, errors.New("it is a symbolic link")
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("it is not a regular file")
	case st.Uid != 0 && st.Uid != h.self.uid && st.Uid != runAs.uid:
		return nil, fmt.Errorf("it belongs to uid %d, not to root or to %s", st.Uid, runAs.name)
	case st.Nlink > 1:
		return nil, fmt.Errorf("it has %d names, one is allowed", st.Nlink)
	}

	// Read it.
	in, err := unix.Open(descriptorPath(file), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s cannot read it: %w", runAs.name, err)
	}
	f := os.NewFile(uintptr(in), path)
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, envFileBytes+1))
	if len(text) > envFileBytes {
		return nil, fmt.Errorf("it has more than %d bytes", envFileBytes)
	}
	return text, err
}
