package agent

import (
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// The types of records. The numbers are on disk. A new type needs a new version of the journal format, so that an
// older agent rejects the file.
const (
	recordSession     journal.Type = iota + 1 // a session begins, before HELLO
	recordWelcome                             // the server has accepted the session
	recordIntent                              // an operation is about to have its effect; carries the record of a new process
	recordDone                                // an operation had its effect; carries the record of the process
	recordNever                               // a tombstone: an operation had no effect and never will
	recordInterrupted                         // an operation was in progress when the agent died
	recordAck                                 // verdicts are durable at the server and can be forgotten
	recordProcess                             // written by a compaction: a process
	recordGen                                 // written by a compaction: the newest generation of a process
	recordOp                                  // written by a compaction: an operation

	// The types from here on exist since journal format 2.

	recordGroups      // all resource pools of this host
	recordEvent       // something happened to a process
	recordEventsAcked // the server has the events up to a number

	// The types from here on exist since journal format 3.

	recordHeld // which process belongs to a definition, and how its earlier runs ended
)

// entry is the body of every record. Each type uses some of the fields.
type entry struct {
	Session uint64            `json:"session,omitempty"`
	Base    uint64            `json:"base,omitempty"`
	Agent   gozzard.AgentID   `json:"agent,omitempty"` // the owner of the journal; earlier versions did not write it
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
	Held    *supervise.Held   `json:"held,omitempty"`
	Past    *supervise.Past   `json:"past,omitempty"` // beside Held; earlier versions ignore it
	File    *fileEntry        `json:"file,omitempty"` // of an intent; earlier versions ignore it
}

// opEntry is an operation in a record. The action is only for people that read the journal.
type opEntry struct {
	ID     opText      `json:"id"`
	Task   int64       `json:"task,omitempty"`
	Index  int32       `json:"index,omitempty"`
	Gen    uint64      `json:"gen,omitempty"`
	Action string      `json:"action,omitempty"`
	Key    gozzard.Key `json:"key"`
}

// opText is an operation id in its text form.
type opText gozzard.OpID

func (t opText) MarshalText() ([]byte, error) { return []byte(gozzard.OpID(t).String()), nil }

func (t *opText) UnmarshalText(b []byte) error {
	id, err := gozzard.ParseOpID(string(b))
	*t = opText(id)
	return err
}

// encode makes a journal record.
func (e *entry) encode(t journal.Type) journal.Entry {
	b, err := json.Marshal(e)
	if err != nil { // cannot happen: an entry has only strings and finite numbers
		panic(fmt.Sprintf("cannot encode a journal record: %v", err))
	}
	return journal.Entry{Type: t, Body: b}
}

// decodeEntry reads a record and checks that it has everything its type needs. A record with a good checksum that
// makes no sense was written by another program. It is an error, and is not skipped.
func decodeEntry(t journal.Type, body []byte) (*entry, error) {
	var e entry
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("cannot decode a record of type %d: %w", t, err)
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
	case recordHeld:
		ok = e.Key != nil && e.Held != nil
	default:
		return nil, fmt.Errorf("unknown record type %d: a newer agent has written it", t)
	}

	if !ok {
		return nil, fmt.Errorf("record of type %d is incomplete", t)
	}
	return &e, nil
}
