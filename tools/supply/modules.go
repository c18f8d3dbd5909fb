package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is one that has packages in a build, the standard library being one too.
type module struct {
	Path    string
	Version string
	Dir     string
	files   map[string]bool // of licences, beside its packages and above them
}

// listed is what the tool chain says about a package.
type listed struct {
	Dir        string
	Standard   bool
	ImportPath string
	Module     *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// modules finds everything that is built into a package on any of the platforms, this one when none is named,
// sorted by path.
func modules(platforms []string, pkg string) ([]*module, error) {
	if len(platforms) == 0 {
		platforms = []string{""}
	}

	all := map[string]*module{}
	std, err := standard()
	if err != nil {
		return nil, err
	}

	all[std.Path] = std
	for _, p := range platforms {
		packages, err := list(p, pkg)
		if err != nil {
			return nil, err
		}
		for _, l := range packages {
			if l.Standard || l.Module == nil || l.Module.Main {
				continue
			}
			m := &module{Path: l.Module.Path, Version: l.Module.Version, Dir: l.Module.Dir, files: map[string]bool{}}
			if r := l.Module.Replace; r != nil {
				m.Path, m.Version, m.Dir = r.Path, cmp.Or(r.Version, "(devel)"), r.Dir // a folder has no version; the linker writes this one
			}
			if known := all[m.Path]; known != nil {
				m = known
			}
			all[m.Path] = m
			if err := m.look(l.Dir); err != nil {
				return nil, err
			}
		}
	}

	return slices.SortedFunc(maps.Values(all), func(a, b *module) int { return strings.Compare(a.Path, b.Path) }), nil
}

// list asks the tool chain for the packages of a build.
func list(platform, pkg string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,ImportPath,Module", pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")

	if platform != "" {
		system, arch, ok := strings.Cut(platform, "/")
		if !ok {
			return nil, fmt.Errorf("%q is no platform such as linux/amd64", platform)
		}
		cmd.Env = append(cmd.Env, "GOOS="+system, "GOARCH="+arch)
	}

	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list what %s is built from: %w: %s", pkg, err, &stderr)
	}

	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot read the list of what %s is built from: %w", pkg, err)
		}
		all = append(all, l)
	}
}

// standard is the library that comes with the tool chain.
func standard() (*module, error) {
	out, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the tool chain: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	m := &module{Path: "std", Version: version, Dir: root, files: map[string]bool{}}
	return m, m.look(root)
}

// look notes the files of licences in a folder and in those above it, up to the module's own.
func (m *module) look(dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("cannot look for licences of %s: %w", m.Path, err)
		}
		for _, e := range entries {
			if !e.IsDir() && (isLicence(e.Name()) || isAside(e.Name())) {
				m.files[filepath.Join(dir, e.Name())] = true
			}
		}
		if dir == m.Dir || !strings.HasPrefix(dir, m.Dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// sortedFiles are the files of licences, those of the module's own folder first.
func (m *module) sortedFiles() []string {
	return slices.SortedFunc(maps.Keys(m.files), func(a, b string) int {
		if d := strings.Count(a, string(filepath.Separator)) - strings.Count(b, string(filepath.Separator)); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}
