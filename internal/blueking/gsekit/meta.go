package gsekit

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/record"
)

type overview struct {
	Process    bool `json:"process"`
	ConfigFile bool `json:"configfile"`
	IsAccess   bool `json:"is_access"`
}

// accessOverview says which features a business uses.
func (s *server) accessOverview(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}

	used, err := s.jobs.HasJobs(ctx, r.Caller, r.biz)
	if err != nil {
		return nil, err
	}

	list, err := s.configs.Templates(ctx, r.Caller, r.biz)
	if err != nil {
		return nil, err
	}

	templates := len(list) > 0
	return overview{Process: used, ConfigFile: templates, IsAccess: used || templates}, nil
}

// maxPatterns limits the number of patterns that an expression expands to.
const maxPatterns = 10_000

type matched struct {
	Patterns []string `json:"exps_with_unix_shell_style"`
	Results  []string `json:"filter_results"`
}

// expressionMatch matches an expression with texts.
func (s *server) expressionMatch(ctx context.Context, r *request) (any, error) {
	// Read the request.
	source := must(r.form, "expression", filledUntrimmed)
	candidates := list(r.form, "candidates", untrimmed)

	if v := r.get("candidates"); !v.Exists() {
		r.fault("candidates", r.lang.say(sayRequired))
	}
	if err := r.err(); err != nil {
		return nil, err
	}

	// Compile the expression and expand it.
	e, err := expression.Parse(source)
	if err != nil {
		return nil, fail(codeExpression, r.lang.expressionFault("expression", err))
	}

	patterns, ok := e.Patterns(maxPatterns)
	if !ok {
		r.fault("expression", r.lang.say(sayTooManyPatterns, maxPatterns))
		return nil, r.err()
	}

	// Match the candidates, each once.
	out := matched{Patterns: patterns, Results: []string{}}
	seen := map[string]bool{}
	for _, c := range candidates {
		if err := ctx.Err(); err != nil { // the caller has closed the connection
			return nil, err
		}
		if !seen[c] && e.Match(c) {
			out.Results = append(out.Results, c)
		}
		seen[c] = true
	}

	slices.Sort(out.Patterns)
	return out, nil
}

type footerInfo struct {
	Links     []footerLink `json:"footer"`
	Copyright string       `json:"copyright"`
}

type footerLink struct {
	Text  string `json:"text"`
	Link  string `json:"link"`
	Blank bool   `json:"is_blank"`
}

// footer is what the pages show at their end: a link to the console of this server. The pages ask for it, and for the
// user, with the business 0.
func (s *server) footer(context.Context, *request) (any, error) {
	return footerInfo{Links: []footerLink{{"Gozzard", "/", true}}, Copyright: "Gozzard"}, nil
}

type userRow struct {
	Name    string `json:"username"`
	Display string `json:"display_name"`
}

// users are the users that jobs can be searched by: those that created a job which the caller may see, and the caller.
func (s *server) users(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	counts, err := s.countJobs(ctx, r, record.JobFilter{})
	if err != nil {
		return nil, err
	}
	names := []string{r.Caller.User}
	for i := range counts {
		names = append(names, counts[i].User)
	}
	slices.Sort(names)

	out := []userRow{}
	for _, name := range slices.Compact(names) {
		out = append(out, userRow{name, name})
	}
	return out, nil
}

// visit is called by the pages when a person opens a business. Nothing is recorded about it: the audit has what a person
// does, not what a person looks at.
func (s *server) visit(_ context.Context, r *request) (any, error) {
	must(r.form, "bk_biz_id", integer(0, maxID))
	return nil, r.err()
}
