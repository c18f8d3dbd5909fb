package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// headBytes is how much of a script's first line the kernel reads.
const headBytes = 256

// program is a file that is executed without a shell, because the policy of the host decides about the file. It is
// opened with the rights of the account, judged by its real path, and executed through its open folder: a folder of
// the path that is replaced in between leads nowhere else.
//
// It is not executed by its own descriptor, because the kernel would name the process after the number of the
// descriptor, and a script could not find its own folder. So an account that can write the folder can replace the file
// in the last moment. The policy decides whether such a folder is acceptable; that account could as well write the file.
//
// A script is executed by its real path, because its interpreter opens it by the path that the kernel gives it.
type program struct {
	words  []string
	path   string   // what is executed
	real   string   // for messages
	folder *os.File // nil for a script
}

// openProgram opens and judges the program of a command. It returns nil if the command runs in a shell.
func (h *Host) openProgram(r supervise.Run, dir *folder, user string, cred *syscall.Credential) (*program, error) {
	if h.programs == nil {
		return nil, nil
	}
	words, held, err := h.programs.Plain(r.Command)
	if err != nil || !held {
		return nil, err
	}

	// Open the file, and ask the policy about it.
	name := settingOf(r)
	file, real, err := openExecutable(int(dir.file.Fd()), words[0], cred)
	if err != nil {
		return nil, fmt.Errorf("%s: program %s: %w", name, words[0], err)
	}
	defer file.Close()
	if err := h.programs.Program(user, name, real, false); err != nil {
		return nil, err
	}

	// Ask the policy about the interpreter of a script.
	p := &program{words: words, path: real, real: real}
	interpreter, err := interpreterOf(file, cred)
	if err != nil {
		return nil, fmt.Errorf("%s: program %s: %w", name, real, err)
	}
	if interpreter != "" {
		if err := h.judgeInterpreter(name, interpreter, user, cred); err != nil {
			return nil, fmt.Errorf("%s: script %s: %w", name, real, err)
		}
		return p, nil
	}

	// Hold the folder of a program.
	if p.folder, err = holdFolder(file, real, cred); err != nil {
		return nil, fmt.Errorf("%s: program %s: %w", name, real, err)
	}
	p.path = descriptorPath(p.folder) + "/" + filepath.Base(real)
	return p, nil
}

// settingOf names the command of a run as the definition does.
func settingOf(r supervise.Run) string {
	switch {
	case r.Action == gozzard.ActionQuery && r.Command == r.Spec.Control.Health:
		return "health_cmd"
	case r.Action == gozzard.ActionQuery:
		return "version_cmd"
	}
	return r.Action.String() + "_cmd"
}

// openExecutable opens a regular file with the rights of an account and returns its real path.
func openExecutable(dir int, path string, cred *syscall.Credential) (*os.File, string, error) {
	fd := -1
	err := asAccount(cred, func() (err error) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			fd, err = unix.Openat(dir, path, unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	file := os.NewFile(uintptr(fd), path)

	// A file that was removed has no path any more.
	var st unix.Stat_t
	real, err := os.Readlink(descriptorPath(file))
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errors.New("not a regular file")
	case st.Nlink == 0:
		err = errors.New("it was removed")
	}
	if err != nil {
		return nil, "", errors.Join(err, file.Close())
	}
	return file, real, nil
}

// holdFolder opens the folder of a program, which must still contain it.
func holdFolder(file *os.File, real string, cred *syscall.Credential) (*os.File, error) {
	fd := -1
	var inside, judged unix.Stat_t
	err := asAccount(cred, func() (err error) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			fd, err = unix.Open(filepath.Dir(real), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			return err
		}
		return unix.Fstatat(fd, filepath.Base(real), &inside, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err == nil {
		err = unix.Fstat(int(file.Fd()), &judged)
	}
	if err == nil && (inside.Dev != judged.Dev || inside.Ino != judged.Ino) {
		err = errors.New("it was replaced while it was checked")
	}
	if err != nil {
		closeFD(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), real), nil
}

// judgeInterpreter asks the policy about the program that a script names.
func (h *Host) judgeInterpreter(name, path, user string, cred *syscall.Credential) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("its interpreter %q is not an absolute path", path)
	}
	file, real, err := openExecutable(unix.AT_FDCWD, path, cred)
	if err != nil {
		return fmt.Errorf("its interpreter %s: %w", path, err)
	}
	defer file.Close()

	next, err := interpreterOf(file, cred)
	switch {
	case err != nil:
		return fmt.Errorf("its interpreter %s: %w", path, err)
	case next != "":
		return fmt.Errorf("its interpreter %s is a script itself", path)
	}
	return h.programs.Program(user, name, real, true)
}

// interpreterOf reads which program a script names in its first line. It is "" for a file that is no script.
func interpreterOf(file *os.File, cred *syscall.Credential) (string, error) {
	// The agent may read what the account may only execute, or the other way round.
	f, err := os.Open(descriptorPath(file))
	if errors.Is(err, os.ErrPermission) && cred != nil {
		err = asAccount(cred, func() (err error) {
			f, err = os.Open(descriptorPath(file))
			return err
		})
	}
	if err != nil {
		return "", fmt.Errorf("cannot read whether it is a script: %w", err)
	}
	defer f.Close()

	// Read the first line as the kernel does.
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("cannot read whether it is a script: %w", err)
	}
	line, isScript := bytes.CutPrefix(head[:n], []byte("#!"))
	if !isScript {
		return "", nil
	}
	line, _, ended := bytes.Cut(line, []byte("\n"))
	words := strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 || !ended && n == headBytes {
		return "", errors.New("its first line has no interpreter, or is too long")
	}
	return strings.TrimRight(words[0], "\x00"), nil
}

// descriptorPath leads to an open file in this process, and in a child before it has executed its program.
func descriptorPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// close releases what the start needed.
func (p *program) close() {
	if p != nil && p.folder != nil {
		_ = p.folder.Close()
	}
}

// explain puts the error of a start into words.
func (p *program) explain(err error, user string) error {
	switch {
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("user %s may not enter the folder of the command, or may not execute %s", user, p.real)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%s is neither a program for this machine nor a script with #! in its first line", p.real)
	}
	return fmt.Errorf("cannot execute %s: %w", p.real, err)
}
