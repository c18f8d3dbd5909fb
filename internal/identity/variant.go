package identity

import "slices"

// RuleNames lists the rules in their order.
func RuleNames() []string { return namesOf(rules, func(r rule) string { return r.name }) }

// ObjectionNames lists the objections in their order.
func ObjectionNames() []string {
	return namesOf(objections, func(o objection) string { return o.name })
}

// Variant returns Decide with the rules and objections that are named, in the order in which they are named. The
// exhaustive test of package supervise uses it to show that no rule is superfluous and that their order matters.
func Variant(ruleNames, objectionNames []string) func(Evidence) Finding {
	rs := choose(rules, ruleNames, func(r rule) string { return r.name })
	os := choose(objections, objectionNames, func(o objection) string { return o.name })
	return func(e Evidence) Finding { return decide(e, rs, os) }
}

func namesOf[T any](table []T, name func(T) string) []string {
	names := make([]string, 0, len(table))
	for _, row := range table {
		names = append(names, name(row))
	}
	return names
}

func choose[T any](table []T, names []string, name func(T) string) (chosen []T) {
	for _, n := range names {
		if i := slices.IndexFunc(table, func(row T) bool { return name(row) == n }); i >= 0 {
			chosen = append(chosen, table[i])
		}
	}
	return chosen
}
