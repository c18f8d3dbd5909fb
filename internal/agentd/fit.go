package agentd

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/host"
)

// FitPolicy makes the policy of the agent of a state folder allow what the options choose. It writes the first policy of
// a host that has none, and does not change one that a person has changed. It returns the file and its content.
func FitPolicy(data string, o PolicyOptions) (path string, text []byte, changed bool, err error) {
	if data, err = filepath.Abs(data); err != nil {
		return "", nil, false, fmt.Errorf("cannot find the state folder: %w", err)
	}
	if info, err := os.Stat(data); o.File == "" && data != unitState && (err != nil || !info.IsDir()) {
		return "", nil, false, fmt.Errorf("%s is no state folder of an agent: name that of the agent with --data; an installed agent "+
			"has /var/lib/gozzard-agent", data)
	}
	own, err := host.OwnPrivileges()
	if err != nil {
		return "", nil, false, err
	}
	rules := JoinOptions{Default: o.Default, Users: o.Users, Policy: o.File}
	if err := rules.checkUsers(own); err != nil {
		return "", nil, false, err
	}

	o.Fit = true
	if path, changed, err = o.create(data, own); err != nil {
		return "", nil, false, err
	}
	text, err = os.ReadFile(path)
	return path, text, changed, err
}
