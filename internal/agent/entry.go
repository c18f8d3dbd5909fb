package agent

import (
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// The types of records. The numbers are on disk: a new one needs a new journal format version, so that an older
// agent refuses the file.
const (
	recordSession     journal.Type = iota + 1 // a session begins, before HELLO
	recordWelcome                             // the server has taken it in
	recordIntent                              // an operation is about to have its effect
	recordDone                                // it had it; the process as it is now goes with it
	recordNever                               // tombstone: it had no effect and never will
	recordInterrupted                         // it was begun when the agent died
	recordAck                                 // verdicts are durable at the server: forget them
	recordProcess                             // compaction: a process
	recordGen                                 // compaction: the newest generation of a process
	recordOp                                  // compaction: an operation
	// the pools of this host, all of them; since journal format 2, as what follows
	recordGroups
	recordEvent       // something happened to a process
	recordEventsAcked // events up to a number have arrived at the server
)

// entry is the body of every record; each type uses its part.
type entry struct {
	Session uint64            `json:"session,omitempty"`
	Base    uint64            `json:"base,omitempty"`
	Op      *opEntry          `json:"op,omitempty"`
	Phase   gozzard.Phase     `json:"phase,omitempty"`
	Outcome *gozzard.Outcome  `json:"outcome,omitempty"`
	Process *supervise.Record `json:"process,omitempty"`
	Removed bool              `json:"removed,omitempty"`
	Key     *gozzard.Key      `json:"key,omitempty"`
	Gen     uint64            `json:"gen,omitempty"`
	Ops     []opText          `json:"ops,omitempty"`
	Groups  []gozzard.Group   `json:"groups,omitempty"`
	Event   *gozzard.Event    `json:"event,omitempty"`
	Seq     uint64            `json:"seq,omitempty"`
}

// opEntry is an operation in a record. The action is for people who read the journal.
type opEntry struct {
	ID     opText      `json:"id"`
	Task   int64       `json:"task,omitempty"`
	Index  int32       `json:"index,omitempty"`
	Gen    uint64      `json:"gen,omitempty"`
	Action string      `json:"action,omitempty"`
	Key    gozzard.Key `json:"key"`
}

// opText is an operation id as text.
type opText gozzard.OpID

func (t opText) MarshalText() ([]byte, error) { return []byte(gozzard.OpID(t).String()), nil }

func (t *opText) UnmarshalText(b []byte) error {
	id, err := gozzard.ParseOpID(string(b))
	*t = opText(id)
	return err
}

func (e *entry) encode(t journal.Type) journal.Entry {
	b, err := json.Marshal(e)
	if err != nil { // strings and finite numbers only
		panic(fmt.Sprintf("encode journal entry: %v", err))
	}
	return journal.Entry{Type: t, Body: b}
}

// decodeEntry reads a record and checks that it has what its type needs. A record with a good checksum that does
// not make sense was written by another program: it is refused, not skipped.
func decodeEntry(t journal.Type, body []byte) (*entry, error) {
	var e entry
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("record of type %d: %w", t, err)
	}

	ok := false
	switch t {
	case recordSession, recordWelcome:
		ok = e.Session > 0
	case recordIntent, recordNever, recordInterrupted:
		ok = e.Op != nil
	case recordDone:
		ok = e.Op != nil && e.Outcome != nil
	case recordOp:
		ok = e.Op != nil && e.Phase >= gozzard.PhaseBegun && e.Phase <= gozzard.PhaseNever
	case recordAck, recordGroups:
		ok = true
	case recordEvent:
		ok = e.Event != nil && e.Event.Seq > 0
	case recordEventsAcked:
		ok = e.Seq > 0
	case recordProcess:
		ok = e.Process != nil
	case recordGen:
		ok = e.Key != nil
	default:
		return nil, fmt.Errorf("record of unknown type %d: written by a newer agent", t)
	}

	if !ok {
		return nil, fmt.Errorf("record of type %d lacks what it needs", t)
	}

	return &e, nil
}
