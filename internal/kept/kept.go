// Package kept keeps the former contents of files that were replaced on a host, so that they can be compared and put back:
// a bounded number of each file, of a bounded age and size.
package kept

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

// Options of a Store. Dir is required.
type Options struct {
	Dir string // the state folder of the agent
	Now func() time.Time
	Log *slog.Logger

	Versions int           // of one file; 10
	Age      time.Duration // 90 days
	Bytes    int64         // of all contents; 256 MiB. The newest content of each file stays in any case
}

// Store has one folder for each file, and there one file for each former content. Its name is the time at which the
// content was replaced. Its first line describes the content, which follows.
type Store struct {
	o   Options
	dir string

	mu    sync.Mutex
	bytes int64 // of all contents
}

// ErrMissing is the error for a content that is not kept.
var ErrMissing = errors.New("this host does not keep a content with that digest for this file")

// header is the first line of a kept content.
type header struct {
	Path    string              `json:"path"`
	Version gozzard.FileVersion `json:"version"`
}

// Open opens the store of a state folder and removes what is too old.
func Open(o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Versions == 0 {
		o.Versions = 10
	}
	if o.Age == 0 {
		o.Age = 90 * 24 * time.Hour
	}
	if o.Bytes == 0 {
		o.Bytes = 256 << 20
	}

	s := &Store{o: o, dir: filepath.Join(o.Dir, "files")}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of former contents: %w", err)
	}
	if err := s.tidy(); err != nil {
		return nil, fmt.Errorf("cannot read the folder of former contents: %w", err)
	}
	return s, nil
}

// Keep keeps a content that is about to be replaced. It is durable when Keep returns.
func (s *Store) Keep(path string, v gozzard.FileView, task gozzard.TaskSeq) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	// Make its folder.
	dir := s.folder(path)
	if err := os.Mkdir(dir, 0o700); err == nil {
		err = atomicfile.SyncFolder(s.dir)
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}

	// Write it under a time that is later than those of the others.
	names, err := versions(dir)
	if err != nil {
		return err
	}
	at := s.o.Now().UnixNano()
	if len(names) > 0 {
		at = max(at, names[len(names)-1]+1)
	}
	head, err := json.Marshal(header{Path: path, Version: gozzard.FileVersion{At: at / 1e6, SHA256: v.SHA256,
		Size: int64(len(v.Content)), Owner: v.Owner, Group: v.Group, Mode: v.Mode, Task: task}})
	if err != nil {
		return err
	}
	body := slices.Concat(head, []byte("\n"), v.Content)
	if err := atomicfile.Write(filepath.Join(dir, nameOf(at)), body); err != nil {
		return err
	}
	s.bytes += int64(len(body))

	s.bound(dir, append(names, at))
	return nil
}

// bound removes contents of a file beyond the limits, and the oldest of all files when there are too many bytes.
func (s *Store) bound(dir string, names []int64) {
	oldest := s.o.Now().Add(-s.o.Age).UnixNano()
	for len(names) > 1 && (len(names) > s.o.Versions || names[0] < oldest) {
		s.remove(dir, names[0])
		names = names[1:]
	}
	if s.bytes > s.o.Bytes {
		s.shrink()
	}
}

// shrink removes the oldest contents of all files until there is room, but never the newest of a file.
func (s *Store) shrink() {
	type content struct {
		dir string
		at  int64
	}
	var all []content
	dirs, err := os.ReadDir(s.dir)
	if err != nil {
		s.o.Log.Error("cannot list former contents of files", "err", err)
		return
	}
	for _, d := range dirs {
		dir := filepath.Join(s.dir, d.Name())
		names, err := versions(dir)
		for i := 0; err == nil && i < len(names)-1; i++ {
			all = append(all, content{dir, names[i]})
		}
	}

	slices.SortFunc(all, func(a, b content) int { return int(min(max(a.at-b.at, -1), 1)) })
	for i := 0; i < len(all) && s.bytes > s.o.Bytes; i++ {
		s.remove(all[i].dir, all[i].at)
	}
}

func (s *Store) remove(dir string, at int64) {
	path := filepath.Join(dir, nameOf(at))
	fi, err := os.Lstat(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		s.o.Log.Error("cannot remove a former content of a file", "err", err)
		return
	}
	s.bytes -= fi.Size()
}

// Versions lists the former contents of a file of an owner, the newest first.
func (s *Store) Versions(path, owner string) ([]gozzard.FileVersion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var list []gozzard.FileVersion
	err := s.each(path, func(h *header, _ []byte) bool {
		if h.Version.Owner == owner {
			list = append(list, h.Version)
		}
		return true
	})
	return list, err
}

// Kept reads a former content of a file of an owner.
func (s *Store) Kept(path, owner, digest string) (view gozzard.FileView, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	err = s.each(path, func(h *header, content []byte) bool {
		v := &h.Version
		if v.Owner != owner || v.SHA256 != digest || gozzard.FileDigest(content) != digest {
			return true
		}
		view = gozzard.FileView{Exists: true, Owner: v.Owner, Group: v.Group, Mode: v.Mode, Size: v.Size, SHA256: v.SHA256,
			Changed: v.At, Content: content}
		return false
	})
	if err == nil && !view.Exists {
		err = ErrMissing
	}
	return view, err
}

// each calls f with the former contents of a file, the newest first, until f returns false. One that cannot be read is left
// out.
func (s *Store) each(path string, f func(h *header, content []byte) bool) error {
	dir := s.folder(path)
	names, err := versions(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	for _, at := range slices.Backward(names) {
		b, err := os.ReadFile(filepath.Join(dir, nameOf(at)))
		head, content, ok := bytes.Cut(b, []byte("\n"))
		var h header
		if err != nil || !ok || json.Unmarshal(head, &h) != nil || h.Path != path ||
			h.Version.Size != int64(len(content)) {
			s.o.Log.Error("a former content of a file cannot be read", "path", path, "at", at, "err", err)
			continue
		}
		if !f(&h, content) {
			return nil
		}
	}
	return nil
}

// tidy counts the bytes, and removes what is too old and what a crash left half written.
func (s *Store) tidy() error {
	dirs, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}

	for _, d := range dirs {
		dir := filepath.Join(s.dir, d.Name())
		if err := atomicfile.RemoveLeftovers(dir); err != nil {
			return err
		}
		names, err := versions(dir)
		if err != nil {
			return err
		}
		for _, at := range names {
			if fi, err := os.Lstat(filepath.Join(dir, nameOf(at))); err == nil {
				s.bytes += fi.Size()
			}
		}
		s.bound(dir, names)
	}
	return nil
}

// folder is the folder of a file. Paths may be longer than names, so its name is a digest.
func (s *Store) folder(path string) string {
	return filepath.Join(s.dir, gozzard.FileDigest([]byte(path))[:32])
}

func nameOf(at int64) string { return fmt.Sprintf("%019d", at) }

// versions lists the times of the contents in a folder, the oldest first.
func versions(dir string) ([]int64, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []int64
	for _, e := range list {
		if at, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && nameOf(at) == e.Name() {
			names = append(names, at)
		}
	}
	slices.Sort(names)
	return names, nil
}
