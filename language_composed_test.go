package gozzard_test

import (
	"path/filepath"
	"testing"
)

// composedTexts are texts of the command line that the scan does not see, and where they are made: single words that
// stand in other texts, and texts that a program puts together.
var composedTexts = map[string]string{
	// Words in faults of documents.
	"nothing": "internal/yamldoc/node.go", "list": "internal/yamldoc/block.go", "mapping": "internal/yamldoc/block.go",
	"after |": "internal/yamldoc/literal.go", "after ---": "internal/yamldoc/parse.go", "after ...": "internal/yamldoc/parse.go",

	// Of alerts.
	"started": "internal/supervise/events.go", "the process ended with an exit status that is not known": "internal/supervise/words.go",
	"too many newer messages wait for this receiver": "internal/sqlstore/notify_message.go",
	"%s: %d of %d attempts failed: %s":               "internal/notify/watch.go", "%d of %d attempts failed: %s": "internal/notify/watch.go",
	"%s: %d of %d attempts failed": "internal/notify/watch.go",

	// The place of an answer.
	"host %s: %s": "internal/control/draft.go",

	// Levels of a note about an import.
	"security": "internal/importer/importer.go", "check": "internal/importer/importer.go", "note": "internal/importer/importer.go",

	// Errors of the client, and of the record.
	"there is no token %q":    "internal/auth/accounts.go",
	"the audit has no row %d": "internal/sqlstore/audit_find.go",
	"internal error; the server's log has its cause under this request id %s": "client/error.go", "no answer from %s: %s": "client/call.go",

	// Why PostgreSQL refuses.
	"the database accepts no changes: it is a standby, or was set to read-only": "internal/sqlstore/postgres_error.go",
	"the database accepts no more connections":                                  "internal/sqlstore/postgres_error.go",
	"the database is starting or stopping":                                      "internal/sqlstore/postgres_error.go",

	// Of configuration files and businesses.
	"line %d: %s: %s: there is no variable %s, did you mean %s?": "internal/mako/run.go", "line %d: %s: %s: there is no variable %s": "internal/mako/run.go",
	"line %d: %s: %s: there is no variable %s; a variable of the shell is $%s, without braces": "internal/mako/run.go",
	"a release would fail for process %d: %v":                                                  "internal/configfile/apply_check.go",
	"mode: %q must be three or four octal digits up to 0777, such as \"0644\"":                 "file.go",
	"new template": "internal/configfile/apply.go", "%s: %q, was %q": "internal/configfile/apply.go",
	"content: %d bytes, had %d": "internal/configfile/apply.go", "bindings: %d added, %d removed": "internal/configfile/apply.go",
	"host %s of service instance %d is not in the fleet": "internal/control/business_warn.go",

	"line %d: %s: division by zero": "internal/mako/op.go", "line %d: %s: Undefined": "internal/mako/run.go",
	"division by zero": "internal/mako/op.go",

	// Of a library.
	"failed to decrypt and authenticate payload chunk: %s": "internal/backup/archive.go", "failed to decrypt and authenticate payload chunk": "internal/backup/archive.go",

	// Why a health check that is no command fails.
	"health: dial tcp %s: connect: %s": "internal/host/probe.go", "health: dial tcp %s: %s": "internal/host/probe.go",
	"health: Get %q: dial tcp %s: connect: %s": "internal/host/probe.go", "health: Get %q: dial tcp %s: %s": "internal/host/probe.go",
	"health: Get %q: read tcp %s: %s": "internal/host/probe.go", "health: Get %q: %s": "internal/host/probe.go",

	// Verdicts, and what follows in them.
	"already running: %s": "state_message.go", "not running: %s": "state_message.go", "still running: %s": "state_message.go",
	"last output: %s": "internal/supervise/words.go",
	"exits":           "internal/supervise/words.go", "exit": "internal/supervise/words.go",
	"stopped": "internal/supervise/words.go", "killed": "internal/supervise/words.go", "restarted": "internal/supervise/words.go",
	"the process was ended by %s%s": "internal/supervise/words.go", " (core dumped)": "internal/supervise/words.go",
	"pid %s and %d more": "internal/supervise/words.go", "pid %s": "internal/supervise/words.go", "no such user on this host: %s": "internal/host/account_linux.go",

	// Comments of a policy file, which "gozzard agent policy" shows.
	"What the server may do on this host. The server cannot change this file.": "internal/policy/file.go",
	"A change of this file takes effect with the next operation.":              "internal/policy/file.go",
	"commands may run as root": "internal/policy/file.go",
	"the account of definitions that name none; without it they do not run":                                "internal/policy/file.go",
	"other accounts: a name, @group for the members of a group, \"*\" for all accounts":                    "internal/policy/file.go",
	"accounts that are rejected even if users lists them":                                                  "internal/policy/file.go",
	"setup_path must be in one of these folders; symbolic links are resolved first":                        "internal/policy/file.go",
	"what runs as root must be in folders that only root can write":                                        "internal/policy/file.go",
	"commands run in a shell; with false, only a program in path_prefixes and plain arguments are allowed": "internal/policy/file.go",
	"the operations that the server may ask for":                                                           "internal/policy/file.go",
	"the largest number of processes on this host":                                                         "internal/policy/file.go",
	"with shell: false, the only programs that may be executed":                                            "internal/policy/file.go",
	"with shell: false, variables of loaders and interpreters that definitions may set":                    "internal/policy/file.go",
	"which accounts the processes of a namespace may use":                                                  "internal/policy/file.go",

	// Rejections of a policy.
	"%s is not allowed by local policy (%s in %s): %s":                               "internal/policy/rejection.go",
	"permission: %s is not allowed by local policy (%s in %s)":                       "internal/policy/rejection.go",
	"permission: %s is not allowed by local policy (%s in %s): %s":                   "internal/policy/rejection.go",
	"%s as %s is not allowed by local policy (%s in %s): %s":                         "internal/policy/rejection.go",
	"permission: %s as %s is not allowed by local policy (%s in %s): %s":             "internal/policy/rejection.go",
	"; %sto allow it, the owner of the host writes into this file: %s and %s":        "internal/policy/rejection.go",
	"; %sto allow it, the owner of the host writes into this file: %s and %s and %s": "internal/policy/rejection.go",
	"; %sto allow it, the owner of the host runs: %s":                                "internal/policy/rejection.go",
	"; and writes into this file: %s and %s":                                         "internal/policy/rejection.go",
	"; and writes into this file: %s":                                                "internal/policy/rejection.go",
	"%s belongs to uid %d":                                                           "internal/policy/folder.go", "%s is writable by others (mode %04o)": "internal/policy/folder.go",
	"account %s for namespace %s": "internal/policy/namespace.go", "the state folder cannot be written": "status.go",
	"operation %s": "internal/policy/policy.go", "process number %d": "internal/policy/policy.go",
	"it names no account (user), and this host has no default account": "internal/policy/default.go",
	"a command of this definition%s":                                   "internal/policy/default.go",
	" on host %s":                                                      "internal/policy/default.go",
	"name its account: user in the definition":                         "internal/policy/default.go",
	"otherwise, ":                     "internal/policy/rejection.go",
	"the definition names no account": "internal/policy/default.go",
	"the state folder on the host cannot be written, so only stop and kill are carried out: %s":          "internal/agent/unable.go",
	"the state folder on the host cannot be written, and the server does not know it yet, try again: %s": "internal/agent/unable.go",
}

// TestComposedTexts: the files that make composed texts exist.
func TestComposedTexts(t *testing.T) {
	files := map[string]bool{}
	for _, s := range parseAll(t) {
		files[filepath.ToSlash(s.path)] = true
	}
	for text, path := range composedTexts {
		if !files[path] {
			t.Errorf("%q is of %s, which does not exist", text, path)
		}
	}
}
