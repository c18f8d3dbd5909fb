package sqlstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

// addAudit completes the audit row of the task: the actions with their definitions and accounts, and the hosts.
func (a *acceptance) addAudit() (err error) {
	// Count the attempts of each item, and those without a verdict.
	count := make([]int, len(a.items))
	for i := range a.t.Attempts {
		count[a.itemOf[i]]++
		if !a.t.Attempts[i].State.Final() {
			a.open++
		}
	}

	// List the items and their accounts.
	accounts := a.accounts()
	var content gozzard.AuditContent
	var names []string
	for i := range a.items {
		it := &a.items[i]
		line := gozzard.AuditItem{Action: it.action.String(), Namespace: text(it.key.Namespace), Name: text(it.key.Name),
			Hosts: count[i]}
		if it.spec.set {
			line.Definition, line.Account = hex.EncodeToString(it.spec.hash[:]), accounts[it.spec]
			names = append(names, line.Account)
		}
		content.Items = append(content.Items, line)
	}

	slices.Sort(names)
	audit := &a.t.Audit
	audit.Accounts = strings.Join(slices.Compact(names), ",")

	// Compress the texts here, not in the transaction.
	b, err := json.Marshal(content)
	if err != nil {
		return err
	}
	audit.Content = sha256.Sum256(b)
	a.texts, err = packTexts(append(audit.Texts, b))
	audit.Texts = nil
	return err
}

// accounts are the accounts of the definitions of the task.
func (a *acceptance) accounts() map[specRef]string {
	out := make(map[specRef]string, len(a.specs.refs))
	for i, ref := range a.specs.refs {
		out[ref] = accountOf(a.specs.bodies[i])
	}
	return out
}

// accountOf is the account of a definition as the audit has it.
func accountOf(body []byte) string {
	spec, err := gozzard.DecodeSpec(bytes.TrimSpace(body))
	if err != nil || spec.Identity.User == "" {
		return gozzard.AgentAccount
	}
	return strings.ReplaceAll(text(spec.Identity.User), ",", "\uFFFD")
}

// verdicts is the audit row of the outcome of a task without open attempts.
func (a *acceptance) verdicts() gozzard.AuditRow {
	var v verdicts
	for i := range a.t.Attempts {
		v.add(a.t.Attempts[i].Action, a.t.Attempts[i].State, a.t.Attempts[i].Outcome.Code, 1)
	}
	t := a.t.Task
	t.Seq, t.ID = a.seq, gozzard.NewTaskID(a.seq, t.At)
	return v.row(&t, t.At)
}
