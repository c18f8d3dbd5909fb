package gozzard_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/gozzard/gozzard/internal/language"
)

// libraryTexts have the words of the libraries that read the command line and YAML, and those of Go's library and of the
// system.
var libraryTexts = []string{"internal/language/zh/cli-cobra.po", "internal/language/zh/cli-system.po",
	"internal/language/zh/cli-verdict-system.po", "internal/language/zh/cli-yaml.po"}

// textFolders are the folders whose texts reach a person at the command line. Of a folder, all sentences count, or those
// of some files only. calls restricts them to what becomes an error or a fault.
var textFolders = []struct {
	folder string
	files  []string // nil means all
	calls  bool
}{
	{folder: "cmd/gozzard"},
	{folder: ".", files: []string{"audit.go", "audit_content.go", "event.go", "label.go", "operation.go", "rights_check.go",
		"state_message.go", "verdict.go"}}, // the help has the kinds of events
	{folder: "internal/doctor"},
	{folder: "internal/backup", calls: true},
	{folder: "internal/backup", files: []string{"archive.go", "create.go", "key.go", "manifest.go", "place.go", "restore.go"}},
	{folder: "internal/record", files: []string{"survey.go"}},
	{folder: "internal/signing", files: []string{"signerfile.go"}},
	{folder: "internal/sqlstore", files: []string{"file.go", "files.go", "lock.go", "sqlite.go", "sums.go", "sums_check.go", "wal.go"},
		calls: true},
	{folder: "internal/specjson", calls: true},
	{folder: "internal/yamldoc"},
	{folder: "internal/topology"},
	{folder: "internal/supervise"},
	{folder: "internal/identity", files: []string{"decide.go"}},
	{folder: "internal/host", files: []string{"account_linux.go", "cgroup_linux.go", "command_linux.go", "command_windows.go", "envfile.go",
		"envfile_linux.go", "file_linux.go", "files_windows.go", "filewrite_linux.go", "find_linux.go", "folder_linux.go", "group_linux.go", "limit_linux.go",
		"pidfile_linux.go", "probe.go", "process_linux.go", "process_windows.go", "program_linux.go", "readlog_linux.go", "rlimits_linux.go",
		"setup_linux.go", "shell.go", "spawn_linux.go"}},
	{folder: "internal/agent", files: []string{"account.go", "files.go", "history.go", "leftover.go", "operate.go", "policy.go", "restart.go",
		"unable.go"}},
	{folder: "internal/policy"},
	{folder: "internal/delivery", files: []string{"forget.go", "outcome.go"}},
	{folder: "internal/history", files: []string{"read.go"}},
	{folder: "internal/agentd"},
	{folder: "internal/agentmetrics", files: []string{"listener.go"}},
	{folder: "internal/otlp", calls: true},
	{folder: "internal/selfupdate"},
	{folder: "internal/release", files: []string{"manifest.go", "version.go"}},
	{folder: "internal/agentsock", files: []string{"client.go", "handler.go", "other.go"}},
	{folder: "internal/enrol", files: []string{"fetch.go", "join.go", "keypair.go", "leave.go", "membership.go", "token.go"}},
	{folder: "internal/atomicfile"},
	{folder: "internal/host", files: []string{"host_linux.go", "privileges_linux.go", "privileges_windows.go", "subtree_linux.go",
		"supported.go"}},
	{folder: "internal/nats", files: []string{"dialer.go", "link_session.go", "loopback.go"}},
	{folder: "internal/agent", files: []string{"identity.go"}},
	{folder: "internal/journal", files: []string{"file_unix.go", "frame.go", "lock.go", "unable.go", "version.go"}},
	{folder: "internal/api", calls: true},
	{folder: "internal/api", files: []string{"answer.go", "business_selection.go", "clouds.go", "event.go", "expression.go",
		"process.go", "query.go", "reader.go", "task_list.go", "topology.go"}},
	{folder: "internal/notify", files: []string{"alert.go", "alertmanager.go", "command.go", "command_other.go", "command_unix.go", "dial.go",
		"mail.go", "mail_check.go", "post.go", "raise.go", "receiver.go", "receiver_change.go", "receiver_try.go", "robot.go", "sender.go",
		"subscription.go", "watch.go", "webhook.go"}}, // template.go has both languages
	{folder: "internal/sqlstore", files: []string{"notify.go", "notify_message.go", "notify_receiver.go"}, calls: true},
	{folder: "internal/approval"},
	{folder: "internal/auth", calls: true},
	{folder: "internal/auth", files: []string{"accounts.go", "link.go", "login.go", "oidc.go", "pace.go", "proof.go", "resolve.go",
		"second_person.go", "session.go", "token.go", "validate.go"}},
	{folder: "internal/control", files: []string{"business_apply.go", "business_assigned.go", "business_leaving.go", "history.go",
		"log.go", "operate.go", "question.go"}},
	{folder: "internal/enrol", files: []string{"registry.go", "registry_addrs.go", "registry_authority.go", "registry_join.go",
		"registry_state.go", "registry_tokens.go", "restore.go", "return.go", "token.go"}, calls: true},
	{folder: "internal/sqlstore", files: []string{"authority_shared.go", "business.go", "release.go", "request.go", "restore.go", "server.go", "signing.go", "upgrade.go"},
		calls: true},
	{folder: "internal/server", files: []string{"drain.go", "keysync_authority.go", "keysync_kinds.go", "keysync_rotate.go"}, calls: true},
	{folder: "internal/server", files: []string{"keysync.go"}},
	{folder: "internal/server", files: []string{"listen.go"}, calls: true},
	{folder: "internal/upgrade", files: []string{"create.go", "releases.go", "upgrade.go"}, calls: true},
	{folder: "client"},
	{folder: "internal/importer"},
	{folder: "internal/adopt"},
}

// plainTexts are texts of the command line that stay as they are: names of fields, states, and what is typed.
var plainTexts = map[string]string{
	"not tried": "a state: states are the same in every language",
	// The value of a field in a view of several lines. Its name is a word like the header of a column.
	"%s (row %d)": inField,
	"%s at %d":    inField,
	"%s ago":      inField,
	"of row":      inField,
	"%s %s/%s on %d host(s), account %s, definition %.12s": inField,
	"definition %s:\n  %s\n":                               inField,
	"hosts (%d):\n":                                        inField,
	"data folder":                                          inField,
	"external signer":                                      inField,
	"signing %d":                                           inField,
	"next authority":                                       inField,

	"open files":          inField,
	"signing key":         inField,
	" (named by the app)": inField,
	"alone and apps":      inField,
	"app %s":              inField,
	"user %s":             inField,
	"group %s":            inField,
	"agent %s":            inField,
	"uid %s":              inField,
	"set %s":              inField,
	"pid %s":              inField,
	"%s (was %s)":         inField,
	"in %s":               inField,
	"%s on %s":            inField,
	"%s %s, %s ago":       inField,

	// The view of status.
	"processes   %s":                     inField,
	"states      %s":                     inField,
	"restarts    %s":                     inField,
	"versions    %s":                     inField,
	"the server has no definition of it": inField,
	"next start":                         inField,
	"next run":                           inField,
	"last run":                           inField,
	"last exit":                          inField,
	"%s, restart: never":                 typed, // a key of a definition
	" && mv %s %s":                       typed, // a command
	"memory %s":                          inField,
	"cpu %s":                             inField,

	// Why a value of a flag is not completed. Only a test reads it.
	"state folder": unread, "an address of a server": unread, "an address to listen on": unread,
	"an address of this server": unread, "a name of this server": unread, "a name of this machine": unread, "an address of another system": unread,
	"a name in a certificate": unread, "a public key": unread, "is given by the provider": unread,
	"is chosen by the provider": unread, "a network": unread, "new addresses": unread, "addresses of this host": unread,
	"changes every half minute": unread, "is from an earlier output": unread, "a text": unread, "a time": unread,
	"a new name": unread, "a rule of times": unread, "a number with a unit": unread, "a pattern over five fields": unread,
	"a command with arguments": unread, "a name with a number": unread, "ended by Ctrl-C": unread,

	// What Go's library says of a duration, in English only: the Chinese text says the rest itself.
	"time: missing unit in duration": ofGo, ": write for example 30s, 10m or 24h": ofGo,

	// The manual, which is English.
	"gozzard %s": inManual, "%s. See %s(1).": inManual, " (default %s)": inManual,

	// Texts of the agent.
	"--allow-user %s: %w": typed, "--default-user %s: %w": typed, "# %s: www-data": inFile,
	"%s… (%d bytes)": inLog, "update to release %.80q": inLog, // the act log
	"cannot hand over to %s: execve": "\"cannot hand over to %s: %w\" fits it", "--data %s ": typed, // a part of a unit
	"{\"error\":\"cannot encode the answer\"}\n": typed,
	// Why a server rejects a token. The host gets one text for all of them.
	"no such token": inLog, "used up": inLog, "from an address outside its networks": inLog, "for another agent": inLog,

	// Of alerts: beginnings of texts of the agent, and texts for the log.
	"gave up": unread, "over its limit": unread, "cannot encode a subscription: %w": inCause, "cannot encode an alert: %w": inCause,
	"cannot encode the settings of a receiver: %w": inCause,

	// Names of tasks, and lines that programs read.
	"--expect: %w": typed, "--key: %w": typed, "--dir: %w": typed, "%s: %d of %d MiB": typed,
	"%.80q is not the cause of an event": unread, "%.80q is not the cause of an event: %w": unread,
	"retry of %s": typed,

	// Texts of other packages that people do not read as they are.
	"%s as %s": inText, "belongs to uid %d": inText, "is writable by others (mode %04o)": inText, "not permitted": inText,
	"already running": inText, "still running": inText,
	"service instance": inField, "config template": inField,
	"</api/v1/tasks?%s>; rel=\"next\"": header, "Bearer %s": header, "application/json; charset=utf-8": header,
	"application/yaml; charset=utf-8": header,
	"login by password":               inField, "login by provider": inField, "console, login by password": inField,
	"console, login by provider": inField, "console, by a link": inField, "gozzard console csrf": unread, "source: %s -> %s": inField,
	"cannot encode an error": inCause, "request failed": inCause, "cannot encode business %d: %w": inCause,
	"cannot encode the stages of an upgrade: %w": inCause, "cannot read the members of the fleet: %w": inCause,
	"cannot read which authorities the hosts know: %w": inCause, "instance numbers: %w": inCause, "modules: %w": inCause,
	"removed %s: %w": inCause, "service instances: %w": inCause, "sets: %w": inCause,
	"cannot run a supervisor twice":       unread, // a mistake of the program
	"main process ended, its group lives": ruleName, "name or owner differ": ruleName, "named by the pid file": ruleName,
	"never a managed process": ruleName, "of another definition": ruleName, "older than the process on record": ruleName,
	"on record and alive": ruleName, "started and fits": ruleName, "started, nothing on record": ruleName,
	"successor in the group": ruleName, "started, and no name is written": ruleName, "two candidates": ruleName, "younger than the pid file": ruleName,

	"register %s": typed, "start %s": typed, "%snewest: %d:%s\n": typed,
	"# opens backups of gozzard; made %s\n# public key: %s\n%s\n": typed, "gozzard: %v": typed, "gozzard: %s": typed,
	"gozzard %s %s %s/%s\n": typed, "%s %s --credentials %s": typed, "demo remove": typed,
	"retire CODE": typed, "delete CODE": typed, "disable CODE": typed, "enable CODE": typed, "approve VERSION": typed,
	"stop VERSION": typed, "remove VERSION": typed, "remove RELAY": typed, "remove LETTER": typed, "remove RECEIVER": typed, "remove SUBSCRIPTION": typed, "retry LETTER": typed, "disable NAME": typed, "enable NAME": typed, "forget-login NAME": typed,
	"delete NAME": typed,

	// Commands and files that an import and an adoption write, and names of places in files.
	"# Written by gozzard import --adopt.\n": inUnit, "(?m)^[ \\t]*Also[ \\t]*=[ \\t]*([^\\s#;][^\\n]*)": unread,
	"%s exec %s": typed, "exec %s": typed, "exec sh -c %s": typed, "kill -HUP $GOZZARD_PID": typed, "kill -s %s $GOZZARD_PID": typed,
	"rm -f %s": typed, "set -f; %s": typed, "systemctl daemon-reload": typed, "systemctl enable --now %s": typed,
	"sun mon tue wed thu fri sat": typed, "%s of %s": inField, "[%s] of %s": inField,

	"% for host in cc.findall('.//Host'):\n    ${host.attrib['InnerIP']}\n% endfor\n\n": typed,
}

const (
	inField  = "a value beside the name of a field or below the header of a column"
	typed    = "typed by people or read by programs"
	inLog    = "in a log"
	inFile   = "a line of a policy file, which is the same in every language"
	unread   = "nobody reads it"
	inManual = "in the manual"
	ofGo     = "a part of an English text of Go's library"
	header   = "a header of HTTP"
	inCause  = "a cause of an internal error, for the log of the server"
	inText   = "a part of a text in composedTexts"
	inUnit   = "in a file for systemd"
	ruleName = "the name of a rule, which only tests read"
)

// TestEveryTextIsTranslated: every text of the command line has a Chinese one, with the same arguments.
func TestEveryTextIsTranslated(t *testing.T) {
	chinese := language.CommandLine()
	found, words := map[string]string{}, map[string]bool{} // words: texts of one word, of which only some need Chinese
	for _, s := range parseAll(t) {
		for _, part := range textFolders {
			if s.isTest() || s.folder != part.folder || part.files != nil && !slices.Contains(part.files, filepath.Base(s.path)) {
				continue
			}
			for _, text := range messagesIn(s.file, part.calls) {
				if !isPolicyFile.MatchString(text) {
					found[text] = s.path
				}
			}
			for _, word := range oneWordsIn(s.file) {
				words[word] = true
			}
		}
	}
	if len(found) < 700 {
		t.Errorf("only %d texts were found", len(found))
	}

	for _, text := range slices.Sorted(maps.Keys(found)) {
		if !chinese.Has(text) && plainTexts[text] == "" && hasWords(text) {
			t.Errorf("%s: %q has no Chinese text in internal/language/zh/cli-*.po", found[text], text)
		}
	}
	for text := range plainTexts {
		if found[text] == "" {
			t.Errorf("%q is not a text any more: remove it from the list of exceptions", text)
		}
	}

	library := map[string]bool{}
	for _, name := range libraryTexts {
		for _, e := range readPO(t, name) {
			library[e.English] = true
		}
	}
	checkPO(t, "cli-*.po", func(text string) bool {
		return found[text] != "" || library[text] || words[text] || composedTexts[text] != ""
	})
}

// isPolicyFile finds the content of a policy file. It is the same in every language: programs compare it.
var isPolicyFile = regexp.MustCompile(`(?m)^max_processes: `)

// oneWordsIn lists the texts of one word in a file.
func oneWordsIn(f *ast.File) (list []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && !isSentence.MatchString(text) {
				list = append(list, text)
			}
		}
		return true
	})
	return list
}

// notWords are verbs and names of values; commands and the acts of the audit, such as user:login, are not translated
// either.
var notWords = regexp.MustCompile("^[a-z]+:[a-z:-]+(%s)?( %[sd])+$|%[-+#0-9.\\[\\]*]*[a-zA-Z%]|`[^`]*`|^\\s*gozzard [a-z].*")

// hasWords reports whether a text has something to translate.
func hasWords(text string) bool {
	rest := notWords.ReplaceAllString(text, "")
	return isWords.MatchString(rest)
}

var isWords = regexp.MustCompile(`[a-z]{2}`)
