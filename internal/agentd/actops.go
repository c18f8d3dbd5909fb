package agentd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// receivedOps notes the operations of a command. The operations of namespaces that have used up their share are counted
// only. mu is held.
func (l *actLog) receivedOps(ops []gozzard.Op) {
	if len(ops) == 0 {
		return
	}

	// Estimate the size of the row.
	whole := len(l.envelope) <= actsCommand*len(ops)
	size := len(l.envelope)*4/3 + actsRow
	if !whole {
		size = min(actsCommand, len(l.envelope)) + (1+len(ops))*actsRow
	}

	// Take the part of each operation from the share of its namespace.
	now, kept := l.now(), make([]*gozzard.Op, 0, len(ops))
	line := commandLine{At: now.UTC(), Kind: "told", Key: l.key.String()}
	for i := range ops {
		op := &ops[i]
		share := l.shares.of(op.Key.Namespace, now)
		if !share.take(size / len(ops)) {
			share.fold(op.Ref.Task, 1, 0, now)
			continue
		}
		l.writeFold(share, now)
		kept = append(kept, op)
		line.Ops = append(line.Ops, op.ID.String())
	}
	l.writeFolded(now, actsSweep)
	if len(kept) == 0 {
		return
	}

	// Write the row.
	line.FoldedOps = len(ops) - len(kept)
	if whole && line.FoldedOps == 0 {
		line.Envelope = l.envelope
	} else {
		l.shorten(&line, kept)
	}
	b, err := json.Marshal(line)
	l.append(b, err)

	// Correct what was taken. Escaped characters make a row longer than its texts.
	more := float64(len(b))/float64(len(kept)) - float64(size/len(ops))
	for _, op := range kept {
		l.shares.of(op.Key.Namespace, now).left -= more
	}
}

// shorten fills in what a row has instead of the envelope.
func (l *actLog) shorten(line *commandLine, ops []*gozzard.Op) {
	line.Bytes = len(l.envelope)
	if p, err := signing.ProofOf(l.envelope); err == nil {
		line.Proof = &proofLine{Digest: hex.EncodeToString(p.Digest[:]), Steps: p.Steps, Signature: p.Signature}
	}

	for _, op := range ops {
		sum := sha256.Sum256(op.Spec)
		line.Contents = append(line.Contents, shortLine{Task: op.Ref.Task, Action: op.Action.String(),
			Namespace: op.Key.Namespace, Name: op.Key.Name, SpecHash: hex.EncodeToString(sum[:]), SpecBytes: len(op.Spec),
			Command: clipCommand(commandOf(op), actsCommand/len(ops))})
	}
}

// commandOf is the command that an operation runs, "" if it has no definition or runs none.
func commandOf(op *gozzard.Op) string {
	spec, err := gozzard.DecodeSpec(op.Spec)
	if err != nil {
		return ""
	}

	if spec.File != nil {
		return spec.File.Path + " " + spec.File.SHA256
	}
	if spec.Script != nil {
		return scriptOf(spec.Script)
	}
	switch op.Action {
	case gozzard.ActionStop:
		return spec.Control.Stop
	case gozzard.ActionRestart:
		return spec.Control.Restart
	case gozzard.ActionReload:
		return spec.Control.Reload
	case gozzard.ActionKill:
		return spec.Control.Kill
	}
	return spec.Control.Start
}

// scriptOf is the commands of a script, and the digests of its texts.
func scriptOf(s *gozzard.ScriptSpec) string {
	var lines []string
	for i := range s.Steps {
		lines = append(lines, s.Steps[i].Command)
	}
	for i := range s.Texts {
		lines = append(lines, s.Texts[i].Path+" "+gozzard.FileDigest(s.Texts[i].Content))
	}
	return strings.Join(lines, "; ")
}

// clipCommand is the beginning of a long command, with its length.
func clipCommand(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
}
