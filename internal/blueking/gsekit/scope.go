package gsekit

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// environments are the values of bk_set_env; 0 means all.
var environments = []string{"0", "1", "2", "3"}

// scope selects processes by ids and names.
type scope struct {
	Env       string   `json:"bk_set_env"`
	Sets      []int    `json:"bk_set_ids"`
	Modules   []int    `json:"bk_module_ids"`
	Services  []int    `json:"bk_service_ids"`
	Names     []string `json:"bk_process_names"`
	Processes []int    `json:"bk_process_ids"`
}

// expressionScope selects processes by an expression for each of the five parts of their name.
type expressionScope struct {
	Env     string `json:"bk_set_env"`
	Set     string `json:"bk_set_name"`
	Module  string `json:"bk_module_name"`
	Service string `json:"service_instance_name"`
	Name    string `json:"bk_process_name"`
	Process string `json:"bk_process_id"`
}

// String is the scope as people write it.
func (e *expressionScope) String() string {
	return strings.Join([]string{e.Set, e.Module, e.Service, e.Name, e.Process}, ".")
}

// selection is the selected processes of a request.
type selection struct {
	scope      *scope // nil means by expression
	expression *expressionScope
	query      topology.Query
	choice     record.ConfigChoice // of a job on configuration files
}

// selection reads scope and expression_scope. A scope takes precedence; the expressions are then read, but not
// compiled.
func (f *form) selection(biz int) *selection {
	sel := &selection{query: topology.Query{Biz: biz, Limit: -1}}
	hasScope := f.nest("scope", func(in *form) { sel.scope = in.scope() })
	var compiled *topology.Expression
	hasExpression := f.nest("expression_scope", func(in *form) {
		sel.expression = in.expressionScope()
		if !hasScope {
			compiled = in.compile(sel.expression)
		}
	})
	if !hasScope && !hasExpression && f.sound() { // the only fault in the answer, as callers know it
		f.faults.WriteString(f.lang.say(sayAtLeastOne))
	}

	q := &sel.query
	switch {
	case sel.scope != nil:
		s := sel.scope
		q.Env, q.Sets, q.Modules, q.Services, q.Names, q.Processes = envOf(s.Env), s.Sets, s.Modules, s.Services,
			s.Names, s.Processes
	case sel.expression != nil:
		q.Env, q.Expression = envOf(sel.expression.Env), compiled
	}

	return sel
}

func envOf(text string) topology.Env {
	n, err := strconv.Atoi(text)
	if err != nil { // the fault is already there
		return topology.EnvAny
	}
	return topology.Env(n)
}

func (f *form) scope() *scope {
	s := &scope{Env: topology.EnvFormal.String()}
	if env, given := opt(f, "bk_set_env", choice(environments...)); given {
		s.Env = env
	}
	s.Sets, s.Modules = f.ids("bk_set_ids"), f.ids("bk_module_ids")
	s.Services, s.Names = f.ids("bk_service_ids"), filledList(list(f, "bk_process_names", filled))
	s.Processes = f.ids("bk_process_ids")
	return s
}

// ids reads a list of ids. It is never nil, so that its JSON is a list.
func (f *form) ids(name string) []int {
	out := []int{}
	for _, n := range list(f, name, anyInt()) {
		out = append(out, int(n))
	}
	return out
}

func filledList(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

func (f *form) expressionScope() *expressionScope {
	e := &expressionScope{Env: must(f, "bk_set_env", choice(environments...))}
	read := func(name string) string {
		if s, _ := opt(f, name, untrimmed); strings.TrimSpace(s) != "" {
			return s
		}
		return "*"
	}
	e.Set, e.Module, e.Service = read("bk_set_name"), read("bk_module_name"), read("service_instance_name")
	e.Name, e.Process = read("bk_process_name"), read("bk_process_id")
	return e
}

// compile compiles the five expressions one by one: a bracket cannot begin in one part and end in another.
func (f *form) compile(e *expressionScope) *topology.Expression {
	out := &topology.Expression{
		Set: f.expression("bk_set_name", e.Set), Module: f.expression("bk_module_name", e.Module),
		Service: f.expression("service_instance_name", e.Service), Name: f.expression("bk_process_name", e.Name),
	}
	if slice, ok := expression.ParseSlice(e.Process); ok {
		out.Slice = &slice
		return out
	}
	out.Process = f.expression("bk_process_id", e.Process)
	return out
}

// expression compiles one part; nil means everything.
func (f *form) expression(name, text string) *expression.Expression {
	e, err := expression.Parse(text)
	if err != nil {
		f.wrong = append(f.wrong, f.lang.expressionFault(name, err))
		return nil
	}
	if e.All() {
		return nil
	}
	return e
}

// expressionFault says what is wrong with an expression. As in GSEKit, these messages are always Chinese; the reason
// is so only if the caller asks for Chinese.
func (l speech) expressionFault(name string, err error) string {
	var e *expression.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("表达式语法错误: %s: %v", name, err)
	}
	rest := []rune(e.Text)
	rest = rest[min(max(e.Pos, 0), len(rest)):]
	if len(rest) > 0 && rest[0] == '[' && !slices.Contains(rest, ']') {
		return fmt.Sprintf("表达式语法错误，缺少匹配的 ]: %s 第 %d 个字符: %s", name, e.Pos+1, strictjson.Clip(string(rest)))
	}
	return fmt.Sprintf("表达式语法错误: %s 第 %d 个字符: %s: %s", name, e.Pos+1, l.Message(e.Reason),
		strictjson.Clip(string(rest)))
}

// narrow adds the filters that every call on processes has beside its scope.
func (f *form) narrow(q *topology.Query) {
	for _, n := range list(f, "bk_cloud_ids", anyInt()) {
		q.Clouds = append(q.Clouds, int(n))
	}
	f.addresses(q)
	f.states(q, list(f, "process_status_list", anyInt()))
	f.hosted(q, list(f, "is_auto_list", boolean))
}

// nothing makes a query that matches no process.
func nothing(q *topology.Query) { q.Processes = []int{0} }

// addresses filters by whole IPv4 addresses; other texts match no host.
func (f *form) addresses(q *topology.Query) {
	given := list(f, "bk_host_innerips", text)
	for _, s := range given {
		if ip, err := netip.ParseAddr(s); err == nil && ip.Is4() {
			q.IPs = append(q.IPs, ip)
		}
	}
	if len(given) > 0 && len(q.IPs) == 0 {
		nothing(q)
	}
}

// states filters by state. Called twice, a process must be in both lists. A filter for stopped processes finds those
// that were never registered, too: GSEKit has no other state for them, and its pages offer running and stopped only.
func (f *form) states(q *topology.Query, wanted []int64) {
	if len(wanted) == 0 {
		return
	}

	var out []gozzard.RunState
	if slices.Contains(wanted, int64(gozzard.StateStopped)) {
		wanted = append(slices.Clone(wanted), int64(gozzard.StateUnregistered))
	}
	for _, n := range wanted {
		s := gozzard.RunState(n)
		if int64(s) == n && s <= gozzard.StateStopped && (len(q.States) == 0 || slices.Contains(q.States, s)) {
			out = append(out, s)
		}
	}

	if q.States = out; len(out) == 0 {
		nothing(q)
	}
}

// hosted filters by the supervision flag.
func (f *form) hosted(q *topology.Query, wanted []bool) {
	if len(wanted) == 0 {
		return
	}
	var out []bool
	for _, b := range wanted {
		if len(q.Hosted) == 0 || slices.Contains(q.Hosted, b) {
			out = append(out, b)
		}
	}
	if q.Hosted = out; len(out) == 0 {
		nothing(q)
	}
}
