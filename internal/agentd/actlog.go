package agentd

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	actsFile  = "acts.log"
	actsBytes = 64 << 20
	actsText  = 1 << 10 // of a command's output
)

// actLog is the host's own record of the commands that it received and of what they came to: lines of JSON in acts.log
// of the state folder, 64 MiB at most. The envelope of every command with operations is kept as it came, so that its
// signature proves later that the server sent it. The file is not synced: the agent relies on the journal.
type actLog struct {
	ring   *journal.Ring
	log    *slog.Logger
	now    func() time.Time
	failed atomic.Bool

	// Of the present command: the link opens an envelope and then hands over its command, one at a time.
	envelope []byte
	key      signing.KeyID

	roll uint64 // the upgrade whose order was noted: the server repeats orders
}

func openActLog(dir string, log *slog.Logger) (*actLog, error) {
	ring, err := journal.OpenRing(filepath.Join(dir, actsFile), actsBytes)
	if err != nil {
		return nil, err
	}
	return &actLog{ring: ring, log: log, now: time.Now}, nil
}

// commandLine is a received command. Its kind is "told" in the file, as in files of earlier versions.
type commandLine struct {
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"` // "told"
	Key      string    `json:"key"`  // the key that signed it
	Ops      []string  `json:"ops"`
	Envelope []byte    `json:"envelope"` // base64 in JSON
}

// actLine is the outcome of an operation.
type actLine struct {
	At        time.Time       `json:"at"`
	Kind      string          `json:"kind"` // "ran"
	Op        string          `json:"op"`
	Task      gozzard.TaskSeq `json:"task"`
	Action    string          `json:"action"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	SpecHash  string          `json:"spec_hash"`
	Code      gozzard.Code    `json:"code"`
	Message   string          `json:"message,omitempty"` // such as the exit code and the end of the output
}

// opened remembers the envelope of the command that comes next.
func (l *actLog) opened(envelope []byte, key signing.KeyID) { l.envelope, l.key = envelope, key }

// received notes a command with operations or with an order to update, before it is carried out.
func (l *actLog) received(cmd *gozzard.Command) {
	if cmd.Kind == gozzard.CommandOperate {
		line := commandLine{At: l.now().UTC(), Kind: "told", Key: l.key.String(), Envelope: l.envelope}
		for i := range cmd.Ops {
			line.Ops = append(line.Ops, cmd.Ops[i].ID.String())
		}
		l.write(line)
	}

	if o := cmd.Update; cmd.Kind == gozzard.CommandUpdate && o != nil && o.Roll != l.roll {
		l.roll = o.Roll
		l.write(commandLine{At: l.now().UTC(), Kind: "told", Key: l.key.String(),
			Ops: []string{fmt.Sprintf("update to release %.80q", o.Version)}, Envelope: l.envelope})
	}

	l.envelope = nil
}

// acted notes the outcome of an operation.
func (l *actLog) acted(a agent.Act) {
	text := a.Outcome.Message
	if len(text) > actsText {
		text = strings.ToValidUTF8(text[len(text)-actsText:], "")
	}
	l.write(actLine{
		At: l.now().UTC(), Kind: "ran", Op: a.Op.String(), Task: a.Ref.Task, Action: a.Action.String(),
		Namespace: a.Key.Namespace, Name: a.Key.Name,
		SpecHash: hex.EncodeToString(a.Spec[:]), Code: a.Outcome.Code, Message: text,
	})
}

func (l *actLog) write(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		err = l.ring.Append(b)
	}
	if err != nil {
		if !l.failed.Swap(true) { // once: other parts repeat that the disk is full
			l.log.Error("cannot write the act log", "err", err)
		}
		return
	}
	l.failed.Store(false)
}

func (l *actLog) close() {
	if err := l.ring.Close(); err != nil {
		l.log.Error("cannot close the act log", "err", err)
	}
}
