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

// Caller is the app and the user that sent a request, as far as they were authenticated.
type Caller struct {
	App      string `json:"app"`
	User     string `json:"user"`
	Asserted bool   `json:"asserted"` // the app named the user; there was no login

	// Session is the id of the login or token that a person without an app came with. It is not recorded.
	Session string `json:"-"`

	Rights *Rights `json:"-"` // nil means none
}

// PersonApp is the beginning of the app of a person without an app. No real app has such a code: a name has no colon.
const PersonApp = "user:"

// Alone reports whether the caller is a person without an app.
func (c *Caller) Alone() bool { return c.User != "" && c.App == PersonApp+c.User }

// Form is the form of a message that begins with the caller, whose argument is Named: for an app, or for a person without one.
func (c *Caller) Form(app, person string) string {
	if c.Alone() {
		return person
	}
	return app
}

// Named is the name of the app, or of a person without an app.
func (c *Caller) Named() string { return c.Form(c.App, c.User) }

// ReadsTasksOf reports whether the caller may read tasks of an app at all: those of its own app, and a person that sees the
// whole fleet those of all. One app never reads the tasks of another, whatever its rights are.
func (c *Caller) ReadsTasksOf(app string) bool {
	return app == c.App || c.Alone() && c.Rights.SeesAll()
}

// Operation is one request to act on processes on hosts. It has at most one attempt for each process on each host.
type Operation struct {
	Caller         Caller
	Door           string // the form of the request; the door renders results in the same form
	Items          []Item
	IdempotencyKey string
	RequestHash    [32]byte      // of the body: the same key with another body is rejected
	WaitOffline    time.Duration // how long attempts wait for a host that is offline; 0 means not at all
	Confirm        int           // how many processes the caller expects to stop; 0 means that it does not say

	// Adopt says what a start means for a process that is running already: it is supervised from then on, as after a
	// start that succeeded. Without it the start changes nothing, as callers of GSE's APIs expect.
	Adopt bool

	// Expect are the digests of the definitions that the caller has read: the operation is rejected if one that it replaces
	// has another. An empty list that is not nil expects that there is none; nil expects nothing.
	Expect []string

	// Contents are large contents of files, by their digests, that are not inside the items (FileSpec.Parts). The record may have
	// those that are missing.
	Contents map[string][]byte
}

// Item is one action on one process on many hosts.
type Item struct {
	Action  Action
	Key     Key
	Labels  map[string]string
	Spec    *Spec // nil means the registered definition
	Targets []Target
	Refused *Outcome // set by a door that rejects the item but has to answer for each of its targets
}

// Target is one host as the caller named it. ResultKey is what the caller calls the result; the answer has it again.
type Target struct {
	Agent     AgentID  // either Agent or Addr is set
	Addr      HostAddr // set when its IP is valid
	ResultKey string
	Refused   *Outcome // as in Item
}

// OpID identifies one attempt by 128 random bits. A message that is sent again has the same id; a retry by a person
// is a new task with new ids.
type OpID [16]byte

// NewOpID makes a random id.
func NewOpID() OpID {
	var id OpID
	_, _ = rand.Read(id[:]) // never fails since Go 1.24: it ends the program instead
	return id
}

// String is the id in hexadecimal.
func (id OpID) String() string { return hex.EncodeToString(id[:]) }

// LogValue is the id as logs show it.
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

// TaskSeq numbers tasks in the order in which they were accepted. The transaction that accepts a task gets the number
// from a counter that it locks, so the order of numbers is the order of commits. The number is therefore also the
// generation of every attempt in the task.
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

// Seq is the number of the task. ok is false for a text that NewTaskID does not make.
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

// Task is an accepted operation, as the record has it.
type Task struct {
	Seq     TaskSeq
	ID      TaskID
	Caller  Caller
	Door    string
	At      time.Time
	Targets int
	Trace   Trace // "" when it is not traced
}

// Attempt is one action on one process on one host, as the record has it.
type Attempt struct {
	Ref       AttemptRef
	Op        OpID
	Agent     AgentID // "" when the host was unknown at that time
	Addr      HostAddr
	Key       Key
	Action    Action
	ResultKey string
	Labels    map[string]string
	Spec      []byte // by EncodeSpec; empty when there was no definition
	Adopt     bool   // as in Operation; set for starts only
	Account   string // that the caller has a right to (CanonicalAccount); "": the caller may use every account
	State     AttemptState
	Session   uint64 // in which it was last sent
	Outcome   Outcome
	Deadline  time.Time // an attempt that was sent waits for its verdict until then
	Expires   time.Time // an attempt that was not sent waits for its host until then
}

// Generation is the attempt's place in the order of operations on its process. The base of its agent is added to it when
// it is sent (LiftBase).
func (a *Attempt) Generation() uint64 { return uint64(a.Ref.Task) }
