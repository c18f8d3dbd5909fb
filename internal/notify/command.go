package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// The bounds of a command.
const (
	commandOutput = 4 << 10 // bytes that are kept for the error
	maxCommands   = 100
)

// commandPrefix begins the ids of commands. No id of the record has a colon.
const commandPrefix = "command:"

// commandName is a name of a file that can be a command.
var commandName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// commands are the programs in a folder of the server's machine. Only that folder says which there are: no caller of the
// API can make one.
type commands struct {
	folder  string
	account *account // nil: that of the server

	mu   sync.Mutex
	runs map[string]chan struct{} // of each name, with room for one run: tests of admins wait for their turn, too
}

func newCommands(folder, name string) (c *commands, err error) {
	c = &commands{runs: map[string]chan struct{}{}}
	if folder == "" {
		if name != "" {
			return c, errors.New("--notify-account needs --notify-commands")
		}
		return c, nil
	}
	if c.folder, err = filepath.Abs(folder); err != nil {
		return c, fmt.Errorf("--notify-commands %s: %w", folder, err)
	}
	if err := onlyOwnerWrites(c.folder, true); err != nil {
		return c, fmt.Errorf("--notify-commands: %w", err)
	}
	if c.account, err = lookupAccount(name); err != nil {
		return c, fmt.Errorf("--notify-account: %w", err)
	}
	return c, nil
}

// receivers lists the commands as receivers.
func (c *commands) receivers() (list []record.Receiver) {
	if c.folder == "" {
		return nil
	}
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return nil // the next look may find it again
	}
	for _, e := range entries {
		if len(list) < maxCommands && commandName.MatchString(e.Name()) && e.Type().IsRegular() {
			list = append(list, record.Receiver{ID: commandPrefix + e.Name(), Name: e.Name(), Kind: record.ReceiverCommand})
		}
	}
	return list
}

// open makes the sink of a command.
func (c *commands) open(r *record.Receiver) (sink, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	turn := c.runs[r.Name]
	if turn == nil {
		turn = make(chan struct{}, 1)
		c.runs[r.Name] = turn
	}
	return &command{path: filepath.Join(c.folder, r.Name), account: c.account, receiver: r, turn: turn}, nil
}

// command runs a program for every message. Its standard input is the message in the format of the webhook.
type command struct {
	path     string
	account  *account
	receiver *record.Receiver
	turn     chan struct{}
}

func (c *command) Close() {}

func (c *command) Repeat(context.Context, []Message) error { return nil }

// Send runs the program, once at a time. There is no shell, and nothing of the message is in its arguments or its environment.
func (c *command) Send(ctx context.Context, m *Message) error {
	// Check it each time: another file may be at its place by now.
	if err := onlyOwnerWrites(c.path, false); err != nil {
		return err
	}
	body, err := json.Marshal(newHookBody(wordsIn(english), c.receiver, m))
	if err != nil {
		return rejected{fmt.Errorf("cannot encode the message: %w", err)}
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return fmt.Errorf("the command %s still runs: one message at a time", c.receiver.Name)
	}

	// Run it.
	var output tail
	cmd := exec.CommandContext(ctx, c.path)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "GOZZARD_MESSAGE=" + m.ID}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), &output, &output
	cmd.WaitDelay = time.Second
	confine(cmd, c.account)
	err = cmd.Run()

	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the command %s did not end within %s", c.receiver.Name, sendTime)
	}
	return fmt.Errorf("the command %s failed: %w: %s", c.receiver.Name, err, clean(output.String(), 300))
}

// tail keeps the beginning of an output and drops the rest.
type tail struct{ bytes.Buffer }

// Write never fails, so that a program that prints much is not stopped by that.
func (t *tail) Write(b []byte) (int, error) {
	if room := commandOutput - t.Len(); room > 0 {
		t.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}
