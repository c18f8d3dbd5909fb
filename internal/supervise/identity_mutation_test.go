package supervise

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

// Supervision as it is, and supervision with one rule or mechanism removed at a time.

var supervisionFull = flag.Bool("model.full", false,
	"explore the larger configurations of supervision too (minutes, 4 GB)")

// mechanism names what a mutation removes from the agent.
type mechanism uint8

const (
	nothing mechanism = iota
	startIsCompared
	bootIsCompared
	fileNamesEnded
	groupOfOther
	clearSpares
	claimOnRecord
	restoreClaims
	recordIsGivenUp
	heldIsDurable
	recoveryEndsCommands
	startClears
	launchIsOnRecord
	failedStartClears
	settleAfterCheck
	stopLooksForNoOther
	stopTakesMembers
	stopClears
	emptyStopClears
	pullUpWaits
	orphansAreKnown
)

const (
	badForeign   = "a foreign process is signalled"
	badShown     = "a foreign process is shown as running"
	badAmbiguous = "one of two possible processes is shown as running"
	badCopies    = "two copies run"
	badStopped   = "what was stopped runs or comes up"
	badWorker    = "a worker is shown as the process"
	badBeside    = "it is started beside one that a person has started"
	badEnded     = "a process is ended without an operation"
	badRefused   = "a process is refused because of a definition that is not managed"
	badSilent    = "no reason is given"
	badDown      = "a supervised process stays down without a reason"
)

const unwrittenRule = "started, and no name is written"

const orphanRule = "main process ended, its group lives"

// The bounds of the worlds. Each has one kind of trouble, together with an agent that dies.
var (
	starts      = budget{crashes: 2, ops: 2, forks: 1, renames: 1}
	scripts     = budget{crashes: 1, ops: 2, mischief: 1}
	misfits     = budget{crashes: 1, ops: 1, hands: 1, renames: 1}
	silences    = budget{crashes: 1, ops: 2, workers: 1, mischief: 1}
	orphans     = budget{ops: 1, workers: 1, mischief: 1, strangers: 1}
	workers     = budget{crashes: 1, ops: 2, workers: 1, renames: 1}
	pidFiles    = budget{crashes: 1, ops: 1, mischief: 1, strangers: 1}
	hands       = budget{crashes: 1, ops: 2, hands: 1, mischief: 1}
	handovers   = budget{crashes: 1, ops: 2, handovers: 1, mischief: 1}
	definitions = budget{crashes: 1, ops: 2, defines: 2}
	reboots     = budget{reboots: 1, ops: 1, strangers: 1, crashes: 1}
	neighbours  = budget{crashes: 1, ops: 1, mischief: 1}
	adoptions   = budget{ops: 1, hands: 1, mischief: 1}
	returns     = budget{ops: 1, mischief: 1, defines: 1}
	takeovers   = budget{crashes: 1, hands: 1, mischief: 1, defines: 2}
)

var modelConfigs = []modelConfig{
	{name: "starts", defs: 1, live: 3, most: starts},
	{name: "scripts", defs: 1, live: 3, shells: true, most: scripts},
	{name: "misfits", defs: 1, live: 3, most: misfits},
	{name: "names that nobody wrote", defs: 1, live: 3, beside: true, silent: true, most: silences},
	{name: "orphans", defs: 1, live: 4, most: orphans, orphan: gozzard.OrphansWait},
	{name: "workers", defs: 1, live: 4, most: workers},
	{name: "workers that are waited for", defs: 1, live: 4, most: workers, orphan: gozzard.OrphansWait},
	{name: "pid files", defs: 1, live: 3, most: pidFiles},
	{name: "workers by hand", defs: 1, live: 3, most: budget{ops: 1, hands: 1, workers: 1}},
	{name: "hands", defs: 1, live: 3, most: hands},
	{name: "handovers", defs: 1, live: 3, most: handovers},
	{name: "definitions", defs: 1, live: 3, most: definitions},
	{name: "reboots", defs: 1, live: 3, most: reboots},
	{name: "neighbours", defs: 2, live: 4, beside: true, most: neighbours},
	{name: "adoptions", defs: 2, live: 3, most: adoptions},
	{name: "takeovers", defs: 2, live: 3, most: takeovers},
	{name: "returns", defs: 2, live: 2, beside: true, both: true, most: returns},
}

// fullConfigs are worlds with several kinds of trouble at once.
var fullConfigs = []modelConfig{
	{name: "processes, larger", defs: 1, live: 4,
		most: budget{crashes: 2, ops: 2, workers: 1, renames: 1, forks: 1, handovers: 1}},
	{name: "pid files, larger", defs: 1, live: 4,
		most: budget{crashes: 1, reboots: 1, ops: 2, mischief: 2, strangers: 1, hands: 1}},
	{name: "definitions, larger", defs: 1, live: 4,
		most: budget{crashes: 2, ops: 2, defines: 2, workers: 1, hands: 1, renames: 1}},
	{name: "neighbours, larger", defs: 2, live: 4, beside: true, most: budget{crashes: 1, ops: 2, mischief: 1}},
	{name: "adoptions, larger", defs: 2, live: 3,
		most: budget{crashes: 1, ops: 1, hands: 1, mischief: 1, defines: 1}},
}

// TestSupervision explores every reachable state of bounded worlds: nothing foreign is signalled or shown as running,
// of two processes that may be the one none is shown, at most one copy runs, what was stopped stays stopped, nothing
// that runs is ended without an operation, and what is supervised comes back or its status says why not.
func TestSupervision(t *testing.T) {
	configs := modelConfigs
	if *supervisionFull {
		configs = append(slices.Clone(configs), fullConfigs...)
	}

	for _, c := range configs {
		for _, c.cgroup = range []bool{true, false} {
			t.Run(c.String(), func(t *testing.T) {
				r := exploreSupervision(c)
				line := fmt.Sprintf("supervision, %s: %d states explored, depth %d", c, r.States, r.Depth)
				t.Log(line)
				fmt.Println(line)
				if r.Bad != "" {
					t.Error(r)
				}
			})
		}
	}
}

func (c modelConfig) String() string {
	if c.cgroup {
		return c.name + " with cgroups"
	}
	return c.name + " without cgroups"
}

// mutation is a change that must break a promise in a world of a configuration.
type mutation struct {
	name   string
	in     string
	marks  bool // without cgroups
	breaks string
	change func(*modelConfig)
}

// without removes a mechanism of the agent.
func without(x mechanism) func(*modelConfig) { return func(c *modelConfig) { c.broken = x } }

// noRule removes a rule of package identity, noObjection an objection.
func noRule(name string) func(*modelConfig) {
	return func(c *modelConfig) {
		c.decide = identity.Variant(dropName(identity.RuleNames(), name), identity.ObjectionNames())
	}
}

func noObjection(name string) func(*modelConfig) {
	return func(c *modelConfig) {
		c.decide = identity.Variant(identity.RuleNames(), dropName(identity.ObjectionNames(), name))
	}
}

// later moves a rule behind the one that follows it.
func later(name string) func(*modelConfig) {
	return func(c *modelConfig) {
		names := identity.RuleNames()
		i := slices.Index(names, name)
		names[i], names[i+1] = names[i+1], names[i]
		c.decide = identity.Variant(names, identity.ObjectionNames())
	}
}

func dropName(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

// ruleBreaks has for each rule and objection where its removal does harm.
var ruleBreaks = map[string]mutation{
	"successor in the group":     {in: "handovers", breaks: badEnded},
	"on record and alive":        {in: "starts", breaks: badEnded},
	"two candidates":             {in: "hands", breaks: badAmbiguous},
	"started and fits":           {in: "starts", breaks: badDown},
	"named by the pid file":      {in: "hands", breaks: badBeside},
	unwrittenRule:                {in: "names that nobody wrote", breaks: badDown},
	"started, nothing on record": {in: "starts", breaks: badEnded},
	orphanRule:                   {in: "orphans", breaks: badEnded},
	"foreign":                    {in: "pid files", breaks: badSilent},

	"never a managed process":          {in: "scripts", breaks: badShown},
	"of another definition":            {in: "neighbours", breaks: badShown},
	"name or owner differ":             {in: "pid files", breaks: badShown},
	"younger than the pid file":        {in: "pid files", breaks: badShown},
	"older than the process on record": {in: "pid files", breaks: badShown},
}

// agentBreaks has the same for the order of the rules and for what the agent does.
var agentBreaks = []mutation{
	{"two candidates after what fits", "hands", false, badAmbiguous, later("two candidates")},
	{"the pid file after what does not fit", "misfits", false, badAmbiguous, later("named by the pid file")},
	{"foreign before orphans", "orphans", false, badEnded, later(orphanRule)},

	{"a pid is enough", "pid files", false, badShown, without(startIsCompared)},
	{"the boot is not compared", "reboots", false, badShown, without(bootIsCompared)},
	{"a pid file that names what has ended does not count", "workers", false, badWorker, without(fileNamesEnded)},
	{"the group of another definition does not count", "adoptions", false, badShown, without(groupOfOther)},
	{"a group is cleared with what another definition has", "returns", false, badForeign, without(clearSpares)},
	{"what is on record is not claimed", "takeovers", false, badShown, without(claimOnRecord)},
	{"a restarted agent claims nothing before it looks", "takeovers", false, badShown, without(restoreClaims)},
	{"what another definition has adopted stays on record", "takeovers", false, badShown, without(recordIsGivenUp)},
	{"the record is lost with the agent", "starts", true, badCopies, without(heldIsDurable)},
	{"commands of the agent before go on", "starts", false, badEnded, without(recoveryEndsCommands)},
	{"a start does not clear the group", "workers", false, badWorker, without(startClears)},
	{"a start in progress is not on record", "starts", false, badEnded, without(launchIsOnRecord)},
	{"a failed start clears nothing", "starts", false, badEnded, without(failedStartClears)},
	{"a check that passed is not on record", "workers", false, badWorker, without(settleAfterCheck)},
	{"a stop looks for another process", "hands", false, badDown, without(stopLooksForNoOther)},
	{"a stop does not list what belongs to the process", "workers by hand", false, badStopped,
		without(stopTakesMembers)},
	{"a stop clears nothing", "workers", false, badStopped, without(stopClears)},
	{"a stop of what is down clears nothing", "workers", false, badStopped, without(emptyStopClears)},
	{"a pull-up does not wait", "orphans", false, badEnded, without(pullUpWaits)},
	{"orphans are not known", "orphans", false, badEnded, without(orphansAreKnown)},
}

// TestSupervisionMutations removes one rule, one objection or one mechanism at a time. Each removal must break a
// promise. That proves that all of them are needed, and that the model is strong enough to notice.
func TestSupervisionMutations(t *testing.T) {
	all := slices.Clone(agentBreaks)
	for _, name := range identity.RuleNames() {
		m := ruleBreaks[name]
		m.name, m.change = "without the rule "+name, noRule(name)
		all = append(all, m)
	}
	for _, name := range identity.ObjectionNames() {
		m := ruleBreaks[name]
		m.name, m.change = "without the objection "+name, noObjection(name)
		all = append(all, m)
	}

	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			i := slices.IndexFunc(modelConfigs, func(c modelConfig) bool { return c.name == m.in })
			if i < 0 {
				t.Fatalf("no configuration shows that it is needed")
			}
			c := modelConfigs[i]
			c.cgroup = !m.marks
			m.change(&c)
			r := exploreSupervision(c)
			if r.Bad != m.breaks {
				t.Fatalf("%d states and no history in which %q, but %v", r.States, m.breaks, r)
			}
			t.Logf("%d states; %v", r.States, r)
		})
	}
}
