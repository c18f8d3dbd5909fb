package gsekit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// The kinds of objects that a job can act on.
const (
	objectProcess = "process"
	objectConfig  = "configfile"
)

// actions are the words for actions on processes.
var actions = []struct {
	word   string
	action gozzard.Action
}{
	{"start", gozzard.ActionStart}, {"stop", gozzard.ActionStop}, {"restart", gozzard.ActionRestart},
	{"reload", gozzard.ActionReload},
	{"force_stop", gozzard.ActionKill}, {"set_auto", gozzard.ActionHost}, {"unset_auto", gozzard.ActionUnhost},
}

func actionOf(word string) (gozzard.Action, bool) {
	for _, a := range actions {
		if a.word == word {
			return a.action, true
		}
	}
	return gozzard.ActionNone, false
}

func wordOf(action gozzard.Action) string {
	for _, a := range actions {
		if a.action == action {
			return a.word
		}
	}
	return action.String()
}

// actionWord reads an action. One that the object does not have is rejected later, with another code.
func actionWord() kindOf[string] {
	words := workWords()
	for _, a := range actions {
		words = append(words, a.word)
	}
	return choice(words...)
}

type created struct {
	JobID int64 `json:"job_id"`
}

// createJob creates a job for the processes of a scope.
func (s *server) createJob(ctx context.Context, r *request) (any, error) {
	object := must(r.form, "job_object", choice(objectConfig, objectProcess))
	word := must(r.form, "job_action", actionWord())
	sel := r.selection(r.biz)
	r.nest("extra_data", func(in *form) {
		sel.choice = in.choice()
		in.nest("extra_filter_conditions", func(in *form) { in.narrow(&sel.query) })
	})
	return s.create(ctx, r, object, word, sel)
}

// operateProcess is createJob for processes, with more filters.
func (s *server) operateProcess(ctx context.Context, r *request) (any, error) {
	word := must(r.form, "op_type", actionWord())
	sel := r.selection(r.biz)
	r.narrow(&sel.query)
	return s.create(ctx, r, objectProcess, word, sel)
}

func (s *server) create(ctx context.Context, r *request, object, word string, sel *selection) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}

	// Clients know no flag for a file that was changed on its host: a comparison shows it, and a release accepts what was shown.
	releases := object == objectConfig && word == string(record.WorkRelease)
	sel.choice.Expect, sel.choice.Shown = releases, releases

	// Reject an action that the object does not have.
	action, ok := actionOf(word)
	work := record.WorkNone
	if object == objectConfig {
		work, ok = record.JobWork(word), slices.Contains(workWords(), word)
	}
	if !ok {
		return nil, fail(codeJobAction, r.lang.say(sayConfigJob, object, word, strings.Join(workWords(), ", ")))
	}

	// Keep the request in the form in which it is shown again.
	var asked requested
	shown := sel.expression

	if sel.scope == nil {
		asked.Scope = encode(resolved{Env: shown.Env, IsExpression: true, Processes: s.processesOf(r.Caller, sel)})
	} else {
		asked.Scope, shown = encode(sel.scope), s.describe(r.Caller, sel)
	}

	asked.ExpressionScope = encode(shown)
	// Create the job.
	job, err := s.jobs.Create(ctx, record.JobRequest{
		Caller: r.Caller, Biz: r.biz, Action: action, Work: work, Choice: sel.choice, Query: sel.query, Expression: shown.String(), Raw: encode(asked),
		Granularity: s.granularity, Info: picture,
	})
	if err != nil {
		return nil, err
	}

	return created{JobID: job.ID}, nil
}

// requested is the part of a request that is stored with the job and shown again.
type requested struct {
	Scope           json.RawMessage `json:"scope"`
	ExpressionScope json.RawMessage `json:"expression_scope"`
}

// resolved is the scope of a job that was created by expression.
type resolved struct {
	Env          string `json:"bk_set_env"`
	IsExpression bool   `json:"is_expression"`
	Processes    []int  `json:"bk_process_ids"`
}

// maxResolved bounds the processes that are listed with the scope of a job. The tasks of the job show all of them.
const maxResolved = 10_000

// processesOf lists the processes that a selection finds.
func (s *server) processesOf(caller gozzard.Caller, sel *selection) []int {
	q := sel.query
	q.Limit = maxResolved
	_, rows := s.plane.FindProcesses(caller, q)
	ids := make([]int, len(rows))
	for i := range rows {
		ids[i] = rows[i].Process
	}
	return ids
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // strings and numbers only
		panic(fmt.Errorf("cannot encode %T: %w", v, err))
	}
	return b
}
