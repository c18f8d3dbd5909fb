package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/importer"
)

// readImports reads the files of the command line.
func readImports(args []string, units bool, in io.Reader) ([]importer.File, error) {
	var files []importer.File
	for _, arg := range args {
		name, text, err := readImport(arg, units, in)
		if err != nil {
			return nil, usage("cannot read the configuration: %w", err)
		}
		if len(text) > maxDocument {
			return nil, usage("the configuration %s has more than %d MiB", printable(arg), maxDocument>>20)
		}
		files = append(files, importer.File{Name: name, Text: text})
	}
	return files, nil
}

// readImport reads one file. Its name becomes absolute: what a configuration names is relative to it.
func readImport(arg string, units bool, in io.Reader) (name string, text []byte, err error) {
	if arg == "-" {
		text, err = io.ReadAll(io.LimitReader(in, maxDocument+1))
		return "-", text, err
	}
	if name, err = filepath.Abs(arg); err != nil {
		return "", nil, err
	}
	if units {
		return readUnit(arg, name)
	}
	text, err = readLimited(name)
	return name, text, err
}

// readUnit reads a file, or a unit by its name. A name without a folder that could mean both is an error: which of them is
// imported, or moved, must not depend on the folder that the command runs in.
func readUnit(arg, file string) (name string, text []byte, err error) {
	folders := []string{filepath.Dir(file)}
	if !strings.Contains(arg, "/") {
		folders = importer.SystemFolders()
	}
	unit, unitText, found := findUnit(path.Base(arg), folders)
	info, err := os.Stat(file)
	switch isFile := err == nil && info.Mode().IsRegular(); {
	case isFile && found && !strings.Contains(arg, "/") && !sameFile(file, unit):
		return "", nil, fmt.Errorf("%s is a file in this folder and a unit of this machine: write ./%s for the file, or %s for the unit",
			printable(arg), printable(arg), printable(unit))
	case found && !isFile:
		return unit, unitText, nil
	case err == nil:
		text, err = readLimited(file)
		return file, text, err
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, err
	}
	return "", nil, fmt.Errorf("there is no unit %s in %s", printable(unitName(path.Base(arg))), words(folders))
}

// unitTypes are the types of units, by which their names end.
var unitTypes = []string{".service", ".timer", ".socket", ".path", ".target", ".mount", ".automount", ".swap", ".slice", ".scope", ".device"}

// unitName is the name of a unit in full. Without a type it is a service, as for systemctl.
func unitName(base string) string {
	if slices.Contains(unitTypes, path.Ext(base)) {
		return base
	}
	return base + ".service"
}

// findUnit finds a unit, or the template of an instance.
func findUnit(base string, folders []string) (name string, text []byte, ok bool) {
	base = unitName(base)
	prefix, _, instance := strings.Cut(base, "@")
	for _, folder := range folders {
		name := path.Join(folder, base)
		if text, err := readLimited(name); err == nil {
			return name, text, true
		}
		if !instance {
			continue
		}
		if text, err := readLimited(path.Join(folder, prefix+"@"+path.Ext(base))); err == nil {
			return name, text, true
		}
	}
	return "", nil, false
}

// sameFile reports whether two names lead to one file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// readLimited reads a file that is not too large.
func readLimited(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		if err == nil && name == os.DevNull { // a masked unit
			return nil, nil
		}
		return nil, errors.Join(err, fmt.Errorf("%s is not a file", name))
	}
	return io.ReadAll(io.LimitReader(f, maxDocument+1))
}

// isScript reports whether a program begins with #!.
func isScript(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 2)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "#!"
}
