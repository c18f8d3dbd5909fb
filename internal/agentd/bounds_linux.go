package agentd

import (
	"path/filepath"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
)

// Bounds are what the agent that runs on this host accepts: its policy, and the resource limits that it can give.
type Bounds struct {
	rules  *policy.Reach
	limits *policy.Policy // nil: an agent without a policy of its own
	file   string
	pid    int
}

// Refusal is why an agent would not run a definition, and what to do about it.
type Refusal struct {
	Reasons []string
	Flags   []string // of gozzard agent policy
	Lines   []string // of the policy file
	Limits  bool     // a resource limit is too high
}

// FindBounds reads what limits the agent with a status, as that agent does.
func FindBounds(st agentsock.Status) (*Bounds, error) {
	mode := gozzard.ParseAgentMode(st.Mode)
	b := &Bounds{file: st.Policy.File, pid: st.PID}
	reach := &policy.Reach{Rules: policy.Everything(), Mode: mode, Account: host.AccountName(st.UID), UID: uint32(st.UID)}
	if b.file != "" {
		var err error
		if b.limits, err = policy.Load(b.file, policy.TrustBounds(mode)); err != nil {
			return nil, err
		}
		reach.Rules = b.limits
	}
	b.rules = reach
	return b, nil
}

// Check says why the agent would not register and start a definition. It is nil if nothing stands against it.
func (b *Bounds) Check(namespace string, s *gozzard.Spec) *Refusal {
	var r Refusal
	for _, err := range []error{b.rules.Definition(namespace, s), b.rules.Action(gozzard.ActionStart)} {
		switch explained := policy.Explain(err); {
		case err == nil:
		case explained == nil:
			r.Reasons = append(r.Reasons, err.Error())
		default:
			r.Reasons = append(r.Reasons, explained.Reasons...)
			r.Flags, r.Lines = append(r.Flags, explained.Flags...), append(r.Lines, explained.Lines...)
		}
	}
	for _, err := range host.LimitsAbove(b.pid, s.Exec.Rlimits) {
		r.Reasons, r.Limits = append(r.Reasons, err.Error()), true
	}
	if len(r.Reasons) == 0 {
		return nil
	}
	return &r
}

// Allows reports whether processes may be in a folder, as far as the list of folders says.
func (b *Bounds) Allows(folder string) bool {
	real, err := filepath.EvalSymlinks(folder)
	return b.limits == nil || err == nil && b.limits.Inside(real)
}

// Folders are those below which processes may be.
func (b *Bounds) Folders() []string {
	if b.limits == nil {
		return nil
	}
	return b.limits.PathPrefixes
}

// File is the policy of the agent.
func (b *Bounds) File() string { return b.file }

// Command is the command that allows more by flags.
func (b *Bounds) Command(flags []string) string { return policy.Command(b.file, flags) }
