package sim

import (
	"fmt"
	"os"
	"sync"
)

// Notes is the file in the folder of a fleet with what its commands noted: a line for each, with the agent and the text.
// Commands that note nothing leave none.
const Notes = "notes"

// notes writes the file. A test counts its lines, so the fleet ends when one cannot be written.
type notes struct {
	path  string
	fatal func(error)

	mu   sync.Mutex
	file *os.File // nil before the first note; open as long as the program runs
}

// add writes a line. Hosts that no fleet runs have no file.
func (n *notes) add(host, text string) {
	if n == nil {
		return
	}
	if err := n.write(host + " " + text + "\n"); err != nil {
		n.fatal(fmt.Errorf("cannot note the effect of a simulated command: %w", err))
	}
}

func (n *notes) write(line string) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil {
		if n.file, err = os.OpenFile(n.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	_, err = n.file.WriteString(line)
	return err
}
