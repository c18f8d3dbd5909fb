package gozzard

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Limits of scripts on hosts. The policy of a host usually allows less.
const (
	MaxScriptBytes   = 256 << 10 // of all texts and commands of a script together
	MaxScriptSeconds = 24 * 3600 // of all steps together
	MaxScriptSteps   = 16
	MaxScriptTexts   = 16

	MaxScriptOutput = 64 << 10 // of the output that one host returns, over all steps
	MinScriptOutput = 4 << 10
	MaxScriptHosts  = 4096 // in one request: their outputs are answered together

	scriptOutputs = MinScriptOutput * MaxScriptHosts // of all hosts of a request together
)

// ScriptSpec is what an operation runs on a host without a process. It is a part of a Spec, whose Identity.User is the
// account that it runs as.
type ScriptSpec struct {
	Texts  []ScriptText `json:"texts,omitempty"`
	Steps  []ScriptStep `json:"steps"`
	Output int          `json:"output"` // how much output is returned at most, over all steps
}

// ScriptText is a program text. It lies in memory of the host and never on its disk, so Path is only its name in commands.
type ScriptText struct {
	Path    string `json:"path"` // clean and absolute
	Content []byte `json:"content"`
}

// ScriptStep is one command. The steps run one after the other, in their order.
type ScriptStep struct {
	ID      int    `json:"id"`
	Command string `json:"command"`         // shell text; the path of a text means that text
	Seconds int    `json:"seconds"`         // after which it is killed, with everything that it started
	After   []int  `json:"after,omitempty"` // it runs only if these steps succeeded; they come before it
}

// StepState is how a step of a script ended.
type StepState string

// The states of steps.
const (
	StepOK      StepState = "ok"
	StepFailed  StepState = "failed"   // it ended with another code than 0, or could not be started
	StepTimeout StepState = "time_out" // it was killed because its time was over
	StepSkipped StepState = "skipped"  // a step before it did not succeed
)

// ScriptResult is what an agent reports about a script that has ended.
type ScriptResult struct {
	Steps []StepResult `json:"steps"`
}

// StepResult is how one step ended.
type StepResult struct {
	ID      int       `json:"id"`
	State   StepState `json:"state"`
	Exit    int       `json:"exit"` // its exit code; -1 if it has none
	Message string    `json:"message,omitempty"`
	Output  string    `json:"output,omitempty"`   // standard output and errors together, valid UTF-8
	LeftOut int64     `json:"left_out,omitempty"` // bytes in the middle of the output that are missing
	Began   int64     `json:"began,omitempty"`    // Unix milliseconds
	Ended   int64     `json:"ended,omitempty"`
}

// ScriptKey identifies the scripts of an account on a host in the order of operations.
func ScriptKey(namespace, account string) Key {
	name := "script:" + CanonicalAccount(account)
	if ValidateProcessName(name) != nil {
		name = "script:" + FileDigest([]byte(account))
	}
	return Key{Namespace: namespace, Name: name}
}

// ScriptOutput is how much output each of so many hosts may return.
func ScriptOutput(hosts int) int {
	return min(max(scriptOutputs/max(hosts, 1), MinScriptOutput), MaxScriptOutput)
}

// Size is how many bytes the texts and commands have.
func (s *ScriptSpec) Size() (n int64) {
	for i := range s.Texts {
		n += int64(len(s.Texts[i].Content))
	}
	for i := range s.Steps {
		n += int64(len(s.Steps[i].Command))
	}
	return n
}

// Time is the longest time of all steps together.
func (s *ScriptSpec) Time() (d time.Duration) {
	for i := range s.Steps {
		d += time.Duration(s.Steps[i].Seconds) * time.Second
	}
	return d
}

// Validate checks everything that needs no host.
func (s *ScriptSpec) Validate() error {
	switch {
	case len(s.Steps) == 0 || len(s.Steps) > MaxScriptSteps:
		return fmt.Errorf("a script needs 1 to %d steps, this one has %d", MaxScriptSteps, len(s.Steps))
	case len(s.Texts) > MaxScriptTexts:
		return fmt.Errorf("there are %d texts, at most %d are allowed", len(s.Texts), MaxScriptTexts)
	case s.Size() > MaxScriptBytes:
		return fmt.Errorf("texts and commands have %d bytes together, at most %d are allowed", s.Size(), MaxScriptBytes)
	case s.Output < MinScriptOutput || s.Output > MaxScriptOutput:
		return fmt.Errorf("output must be %d to %d bytes, is %d", MinScriptOutput, MaxScriptOutput, s.Output)
	}
	if err := s.validateTexts(); err != nil {
		return err
	}

	known := map[int]bool{}
	for i := range s.Steps {
		if err := s.Steps[i].validate(known); err != nil {
			return err
		}
		known[s.Steps[i].ID] = true
	}
	if s.Time() > MaxScriptSeconds*time.Second {
		return fmt.Errorf("all steps may take %s together, at most %s are allowed", s.Time(), MaxScriptSeconds*time.Second)
	}
	return nil
}

// validateTexts checks the names of the texts. A name that begins with another one could not be told from it in a command.
func (s *ScriptSpec) validateTexts() error {
	for i := range s.Texts {
		p := s.Texts[i].Path
		if err := ValidateFilePath(p); err != nil {
			return err
		}
		for j := range s.Texts {
			if i != j && strings.HasPrefix(s.Texts[j].Path, p) {
				return fmt.Errorf("path: %q is the beginning of another text's path: choose names that differ", path.Base(p))
			}
		}
	}
	return nil
}

// validate checks a step; known are the steps before it.
func (s *ScriptStep) validate(known map[int]bool) error {
	switch {
	case known[s.ID]:
		return fmt.Errorf("step %d comes twice", s.ID)
	case strings.TrimSpace(s.Command) == "":
		return fmt.Errorf("step %d has no command", s.ID)
	case strings.IndexByte(s.Command, 0) >= 0:
		return fmt.Errorf("step %d has a NUL character in its command", s.ID)
	case s.Seconds < 1 || s.Seconds > MaxScriptSeconds:
		return fmt.Errorf("step %d must have a time limit of 1 to %d seconds, has %d", s.ID, MaxScriptSeconds, s.Seconds)
	}
	for _, id := range s.After {
		if !known[id] {
			return fmt.Errorf("step %d must follow step %d, which does not come before it", s.ID, id)
		}
	}
	return nil
}
