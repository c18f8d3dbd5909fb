package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

// The texts of a script lie in memory, and the shell gets them as open files. A file on the disk would be in a folder that
// other accounts may write, could be replaced before it is executed, and would stay there after a crash.

// firstText is the number of the first text in the shell: the ones before it are its input, output and errors.
const firstText = 3

// textPath is the name of a text in the shell.
func textPath(i int) string { return "/proc/self/fd/" + strconv.Itoa(firstText+i) }

// withTexts is a command that names texts by where the shell finds them.
func withTexts(command string, texts []gozzard.ScriptText) string {
	if len(texts) == 0 {
		return command
	}
	var pairs []string
	for i := range texts {
		pairs = append(pairs, texts[i].Path, textPath(i))
	}
	return strings.NewReplacer(pairs...).Replace(command)
}

// openTexts makes the files of the texts. Nobody can change them any more.
func openTexts(texts []gozzard.ScriptText) (files []*os.File, err error) {
	for i := range texts {
		f, err := openText(texts[i].Content)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("cannot hold the text %s in memory: %w", texts[i].Path, err)
		}
		files = append(files, f)
	}
	return files, nil
}

func openText(content []byte) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("gozzard-script", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // kernels before 6.3 do not know the last flag, and need none
		fd, err = unix.MemfdCreate("gozzard-script", flags)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}

	f := os.NewFile(uintptr(fd), "gozzard-script")
	if _, err = f.Write(content); err == nil {
		// Other accounts than the agent's may read and execute it.
		err = f.Chmod(0o555)
	}
	if err == nil {
		const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		err = os.NewSyscallError("fcntl", err)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// keepStart remembers the start of the output before it is trimmed away.
func (o *output) keepStart() error {
	if o.want == 0 || o.start != nil || o.file == nil {
		return nil
	}
	b := make([]byte, o.want)
	n, err := o.file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	o.start = b[:n]
	return nil
}

// whole reads the output up to a limit: all of it, or its start and its end.
func (o *output) whole(most int) (text string, leftOut int64, err error) {
	if o.none || o.file == nil {
		return "", 0, nil
	}
	fi, err := o.file.Stat()
	if err != nil {
		return "", 0, err
	}
	size := fi.Size()

	// All of it, if nothing is missing.
	if size <= int64(most) && o.start == nil {
		b, err := readAt(o.file, 0, size)
		return plainOutput(b), 0, err
	}

	// Else a half of each end.
	half := int64(most / 2)
	if err := o.keepStart(); err != nil {
		return "", 0, err
	}
	start := o.start[:min(int64(len(o.start)), half)]
	from := max(size-half, int64(len(start)))
	end, err := readAt(o.file, from, max(size-from, 0))
	start, end = wholeRunes(start, end)
	return plainOutput(start) + plainOutput(end), max(size-int64(len(start))-int64(len(end)), 0), err
}

func readAt(f *os.File, from, n int64) ([]byte, error) {
	b := make([]byte, n)
	got, err := f.ReadAt(b, from)
	if errors.Is(err, io.EOF) { // it was trimmed in between
		err = nil
	}
	return b[:got], err
}

// wholeRunes drops the parts of characters where a text was cut.
func wholeRunes(start, end []byte) ([]byte, []byte) {
	for n := 1; n <= utf8.UTFMax && n <= len(start); n++ {
		if c := start[len(start)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(start[len(start)-n:]) {
				start = start[:len(start)-n]
			}
			break
		}
	}
	for n := 0; n < utf8.UTFMax-1 && len(end) > 0 && !utf8.RuneStart(end[0]); n++ {
		end = end[1:]
	}
	return start, end
}

// plainOutput is valid UTF-8 without NUL, which records cannot hold. Callers compare what a script prints, so the rest stays.
func plainOutput(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "")
}
