package agentd

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
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

	// An envelope is kept whole up to this size for each of its operations. Of a larger one the proof is kept, and this
	// much of the commands.
	actsCommand = 2 << 10

	actsRow = 512 // what a row has beside texts and envelopes, about
)

// actLog is the host's own record of the commands that it received and of what they came to: lines of JSON in acts.log
// of the state folder, 64 MiB at most. The envelope of a command with operations is kept as it came, so that its
// signature proves later that the server sent it; of a large one its digest is kept, and the signature of that. Each
// namespace has a share of the file (actShares). The file is not synced: the agent relies on the journal.
type actLog struct {
	ring   *journal.Ring
	log    *slog.Logger
	now    func() time.Time
	failed atomic.Bool

	mu     sync.Mutex
	shares actShares

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
	Envelope []byte    `json:"envelope,omitempty"` // base64 in JSON; missing in a short row

	// Of a short row.
	Bytes     int         `json:"bytes,omitempty"` // of the envelope
	Proof     *proofLine  `json:"proof,omitempty"`
	Contents  []shortLine `json:"contents,omitempty"`   // of Ops
	FoldedOps int         `json:"folded_ops,omitempty"` // further operations, of namespaces above their share
}

// proofLine is the proof of an envelope.
type proofLine struct {
	Digest    string `json:"digest"`
	Steps     []byte `json:"steps"`
	Signature []byte `json:"signature"`
}

// shortLine is an operation of an envelope that is not kept.
type shortLine struct {
	Task      gozzard.TaskSeq `json:"task"`
	Action    string          `json:"action"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	SpecHash  string          `json:"spec_hash"`
	SpecBytes int             `json:"spec_bytes"`
	Command   string          `json:"command,omitempty"` // the beginning of a long one
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if cmd.Kind == gozzard.CommandOperate {
		l.receivedOps(cmd.Ops)
	}

	if o := cmd.Update; cmd.Kind == gozzard.CommandUpdate && o != nil && o.Roll != l.roll {
		l.roll = o.Roll
		l.writeFor("", 0, 1, 0, commandLine{At: l.now().UTC(), Kind: "told", Key: l.key.String(),
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writeFor(a.Key.Namespace, a.Ref.Task, 0, 1, actLine{
		At: l.now().UTC(), Kind: "ran", Op: a.Op.String(), Task: a.Ref.Task, Action: a.Action.String(),
		Namespace: a.Key.Namespace, Name: a.Key.Name,
		SpecHash: hex.EncodeToString(a.Spec[:]), Code: a.Outcome.Code, Message: text,
	})
}

// writeFor writes a row of a namespace, or counts it when the namespace has used up its share. mu is held.
func (l *actLog) writeFor(namespace string, task gozzard.TaskSeq, received, ran int, v any) {
	now := l.now()
	b, err := json.Marshal(v)
	if err != nil {
		l.append(nil, err)
		return
	}

	share := l.shares.of(namespace, now)
	if !share.take(len(b)) {
		share.fold(task, received, ran, now)
		l.writeFolded(now, actsSweep)
		return
	}
	l.writeFold(share, now)
	l.append(b, nil)
	l.writeFolded(now, actsSweep)
}

// writeFolded writes the counts that have waited for a while. mu is held.
func (l *actLog) writeFolded(now time.Time, wait time.Duration) {
	for _, share := range l.shares.due(now, wait) {
		l.writeFold(share, now)
	}
}

// writeFold writes the count of a namespace, if there is one. mu is held.
func (l *actLog) writeFold(share *actShare, now time.Time) {
	if !share.folded.any() {
		return
	}
	share.folded.At = now.UTC()
	b, err := json.Marshal(share.folded)
	share.left -= float64(len(b))
	l.append(b, err)
	share.folded = foldLine{Kind: share.folded.Kind, Namespace: share.folded.Namespace}
}

// append writes a row, unless there is an error already.
func (l *actLog) append(b []byte, err error) {
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writeFolded(l.now(), 0)
	if err := l.ring.Close(); err != nil {
		l.log.Error("cannot close the act log", "err", err)
	}
}
