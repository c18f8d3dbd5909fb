package agentd

import (
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/kept"
)

// hostFiles are the files of this host, and what is kept of them.
type hostFiles struct {
	*kept.Store
	host *host.Host
}

// Open implements agent.Files.
func (f hostFiles) Open(account, path string, folders bool) (agent.OpenFile, error) {
	file, err := f.host.OpenFile(account, path, folders)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// openFiles opens the former contents of files. An agent that cannot keep them writes no files, and does the rest.
func (a *Agent) openFiles() agent.Files {
	s, err := kept.Open(kept.Options{Dir: a.options.Data, Log: a.options.Log})
	if err != nil {
		a.options.Log.Error("this agent writes no files", "err", err)
		return nil
	}
	return hostFiles{Store: s, host: a.host}
}

// ownFiles are the files and folders that no operation on files may reach, beside the state folder: whatever the policy
// allows, nothing may change the policy and the program.
func (a *Agent) ownFiles() []string {
	own := []string{"/etc/gozzard"}
	if a.policyFile != nil {
		own = append(own, filepath.Dir(a.policyFile.Path()))
	}
	if program, err := os.Executable(); err == nil {
		own = append(own, program)
	}
	return own
}
