package sim

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
)

// Files are the files of a machine in memory. Every folder exists, and every file belongs to the account that wrote it.
func (h *Host) Files() agent.Files { return memoryFiles{h} }

type memoryFiles struct{ h *Host }

// memoryFile is a file that is open.
type memoryFile struct {
	h       *Host
	account string
	path    string
	view    gozzard.FileView
}

// Open implements agent.Files.
func (m memoryFiles) Open(account, path string, _ bool) (agent.OpenFile, error) {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	view := m.h.files[path]
	if view.Exists && view.Owner != account {
		return nil, fmt.Errorf("file %s belongs to %s", path, view.Owner)
	}
	return &memoryFile{h: m.h, account: account, path: path, view: view}, nil
}

// Keep implements agent.Files. Nothing is kept.
func (m memoryFiles) Keep(string, gozzard.FileView, gozzard.TaskSeq) error { return nil }

// Versions implements agent.Files.
func (m memoryFiles) Versions(string, string) ([]gozzard.FileVersion, error) { return nil, nil }

// Kept implements agent.Files.
func (m memoryFiles) Kept(string, string, string) (gozzard.FileView, error) {
	return gozzard.FileView{}, errors.New("a simulated host keeps no former contents")
}

// View implements agent.OpenFile.
func (f *memoryFile) View() gozzard.FileView { return f.view }

// Same implements agent.OpenFile.
func (f *memoryFile) Same(s *gozzard.FileSpec) bool {
	return f.view.Exists && f.view.SHA256 == s.SHA256 && f.view.Mode == s.Mode && f.view.Group == s.Group
}

// Check implements agent.OpenFile.
func (f *memoryFile) Check(*gozzard.FileSpec) error { return nil }

// Replace implements agent.OpenFile.
func (f *memoryFile) Replace(s *gozzard.FileSpec, content []byte, _ string) error {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	if f.h.files == nil {
		f.h.files = map[string]gozzard.FileView{}
	}
	f.h.files[f.path] = gozzard.FileView{Exists: true, Owner: f.account, Group: s.Group, Mode: s.Mode, Size: int64(len(content)),
		SHA256: s.SHA256, Content: content}
	return nil
}

// Clear implements agent.OpenFile.
func (f *memoryFile) Clear(string) error { return nil }

// Close implements agent.OpenFile.
func (f *memoryFile) Close() {}
