package gozzard

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Caller is who asked, as far as it was proven.
type Caller struct {
	App      string `json:"app"`
	User     string `json:"user"`
	Asserted bool   `json:"asserted"` // User is only the app's word

	Rights *Rights `json:"-"` // nil: none
}

// Operation is one request for one or many processes on one or many hosts. Its targets are disjoint: one attempt
// per (host, process).
type Operation struct {
	Caller         Caller
	Door           string // which form of request it came by; the door uses it again when it renders results
	Items          []Item
	IdempotencyKey string
	RequestHash    [32]byte      // of the request's body, so that a key cannot be used for another request
	WaitOffline    time.Duration // how long attempts may wait for a host that is offline; 0 gives the verdict at once
	Confirm        int           // how many processes the caller says that it takes down; 0: he does not say
}

// Item is one action on one process on many hosts.
type Item struct {
	Action  Action
	Key     Key
	Labels  map[string]string
	Spec    *Spec // nil: what is registered
	Targets []Target
	Refused *Outcome // set by a door that must answer per entry what it will not pass on
}

// Target names one host as the caller did. ResultKey is the caller's name for the entry and is only carried.
type Target struct {
	Agent     AgentID  // one of Agent and Addr is set
	Addr      HostAddr // IsValid when set
	ResultKey string
	Refused   *Outcome
}

// OpID names one attempt: 128 random bits. The system's own repeats keep it; a person's retry is a new task.
type OpID [16]byte

// NewOpID draws an id.
func NewOpID() OpID {
	var id OpID
	_, _ = rand.Read(id[:]) // never fails since Go 1.24: it ends the program instead
	return id
}

func (id OpID) String() string { return hex.EncodeToString(id[:]) }

// LogValue is the id as people write it.
func (id OpID) LogValue() slog.Value { return slog.StringValue(id.String()) }

// ParseOpID is the inverse of String.
func ParseOpID(s string) (OpID, error) {
	var id OpID
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not an operation id", s)
	}
	copy(id[:], b)
	return id, nil
}

// TaskSeq numbers tasks in the order in which they were accepted. It is drawn inside the accepting transaction from
// one row, so the order of numbers is the order of commits; it is therefore also the generation (order of intent)
// of every attempt in the task.
type TaskSeq int64

// AttemptRef is the place of an attempt in the record.
type AttemptRef struct {
	Task  TaskSeq
	Index int32
}

// TaskID names a task by the second in which it was accepted and its number, such as 20240102030405:17. What callers
// and the record see is its name (internal/taskname).
type TaskID string

// NewTaskID makes the id of a task. It is unique because of the number, not because of the clock.
func NewTaskID(seq TaskSeq, at time.Time) TaskID {
	return TaskID(at.UTC().Format("20060102150405") + ":" + strconv.FormatInt(int64(seq), 10))
}

// Seq reads the number back; ok is false for what NewTaskID never made.
func (id TaskID) Seq() (TaskSeq, bool) {
	if len(id) > 64 {
		return 0, false
	}

	at, num, ok := strings.Cut(string(id), ":")
	if !ok || len(at) != 14 || strings.Trim(at, "0123456789") != "" {
		return 0, false
	}

	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != num {
		return 0, false
	}

	return TaskSeq(n), true
}

// Task is an accepted operation as the record has it.
type Task struct {
	Seq     TaskSeq
	ID      TaskID
	Caller  Caller
	Door    string
	At      time.Time
	Targets int
}

// Attempt is one action on one process on one host, as the record has it.
type Attempt struct {
	Ref       AttemptRef
	Op        OpID
	Agent     AgentID // "" when the host was unknown at accept
	Addr      HostAddr
	Key       Key
	Action    Action
	ResultKey string
	Labels    map[string]string
	Spec      []byte // EncodeSpec; empty when none was known
	State     AttemptState
	Session   uint64 // of the newest dispatch
	Outcome   Outcome
	Deadline  time.Time // by then it leaves Dispatched
	Expires   time.Time // by then it leaves Pending
}

// Generation is the attempt's place in the order of intents.
func (a *Attempt) Generation() uint64 { return uint64(a.Ref.Task) }
