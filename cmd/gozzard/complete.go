package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
)

// addCompletion gives every flag and argument that names something its completion in shells. What a command has already
// stays. TestEverythingCompletes fails when a flag or an argument has none and no reason for that.
func addCompletion(env *cliEnv, c *cobra.Command) {
	for _, set := range []*pflag.FlagSet{c.LocalNonPersistentFlags(), c.PersistentFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if find := env.flagCompletion(c, f); find != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, find) // fails when the command has registered its own
			}
		})
	}

	if c.Runnable() && c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
		c.ValidArgsFunction = env.argumentCompletion(c)
	}

	for _, child := range c.Commands() {
		addCompletion(env, child)
	}
}

// flagCompletion is the completion of a flag; nil for a switch and for one that nothing is known about.
func (env *cliEnv) flagCompletion(c *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	switch {
	case !takesValue(f):
		return nil
	case isNumber(f) && !slices.Contains([]string{"biz", "cmdb-biz", "cloud"}, f.Name):
		return cobra.NoFileCompletions
	case freeFlags[f.Name] != "":
		return cobra.NoFileCompletions
	}

	path := strings.TrimPrefix(c.CommandPath(), "gozzard ")
	if find, ok := env.specialFlags()[path+" "+f.Name]; ok {
		return find
	}
	if find, ok := env.namedFlags()[f.Name]; ok {
		return find
	}
	if words, ok := flagWords[f.Name]; ok {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	return placeCompletion(f)
}

// takesValue reports whether a flag is followed by a value.
func takesValue(f *pflag.Flag) bool { return f.NoOptDefVal == "" }

// isNumber reports whether the value of a flag is a number or a time: there is nothing to complete.
func isNumber(f *pflag.Flag) bool {
	return slices.Contains([]string{"int", "int64", "float64", "duration", "uint", "intSlice", "count"}, f.Value.Type())
}

// placeCompletion completes files and folders, by the word for the value in the help. An address has no completion.
func placeCompletion(f *pflag.Flag) cobra.CompletionFunc {
	word, usage := pflag.UnquoteUsage(f)
	switch {
	case word == "ADDRESS":
		return cobra.NoFileCompletions // of a database: only the caller knows it
	case word == "FILE" || word == "PATH" || strings.HasSuffix(f.Name, "-file") || f.Name == "config" || f.Name == "policy":
		return files
	case word == "FOLDER" || f.Name == "data" || strings.Contains(usage, "state folder"):
		return folders
	}
	return nil
}

func files(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func folders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeFlag sets how the value of a flag is completed.
func completeFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f) // it fails only for a flag that does not exist
}

// completeFixed completes the value of a flag with one of a few words.
func completeFixed(cmd *cobra.Command, flag string, words ...string) {
	completeFlag(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// flagWords are the values of flags that have few.
var flagWords = map[string][]string{
	"env":       {"test", "experience", "formal"},
	"kind":      eventKinds(),
	"line-ends": {"lf", "crlf"},
	"role":      {"viewer", "operator", "admin", "enroller"},
	"action": {"start", "stop", "restart", "reload", "kill", "manage", "unmanage", "query", "register", "update",
		"unregister", "configure", "script", "transfer", "restart-agent"},
	"receiver-kind": {"webhook", "alertmanager", "mail", "wecom", "dingtalk", "feishu", "slack"},
	"alert": {"crash_loop", "host_lost", "limit_exceeded", "task_failed", "health_failing", "start_failed", "run_failed",
		"process_ended", "restart_failed", "gave_up", "orphaned", "policy_changed", "foreign_address", "topology_left_out"},
	"group-by":      {"kind", "namespace", "name", "host"},
	"language":      {"en", "zh"},
	"tls":           {"starttls", "tls", "none"},
	"restart":       {"always", "on-failure", "never"},
	"require-totp":  {"admins", "all"},
	"second-person": {"admin-grants", "revoked-hosts", "root-hosts="},
	"signer-keys":   {"signing", "authority"},
	"health":        {"http://127.0.0.1:", "tcp://127.0.0.1:"},
	"otlp-callers":  {"follow", "link", "ignore"},
	"oidc-claim":    {"email", "preferred_username", "sub"},
	"stages":        {"1,10,100"},
}

// eventKinds are the kinds of events.
func eventKinds() (words []string) {
	for _, k := range gozzard.EventKinds() {
		words = append(words, string(k.Kind))
	}
	return words
}

// freeFlags have values that only the caller knows.
var freeFlags = map[string]string{
	"url": "an address of a server", "enrol-url": "an address of a server", "listen": "an address to listen on", "metrics-listen": "an address to listen on", "agent-listen": "an address to listen on",
	"agent-address": "an address of this server", "address": "a name of this machine", "server": "an address of a server", "server-name": "a name of this server",
	"audit-syslog": "an address of another system", "otlp-endpoint": "an address of another system", "audit-syslog-name": "a name in a certificate",
	"to-url": "an address of another system", "mail-server": "an address of another system", "mail-user": "an address of another system",
	"mail-to": "an address of another system", "from": "an address of this server", "notify-allow": "networks", "receiver": "is from an earlier output", "process": "is from an earlier output",
	"wait": "a time", "interval": "a time", "repeat": "a time", "business": "is from an earlier output", "notify-account": "a name of this machine",
	"audit-webhook": "an address of another system", "backup-recipient": "a public key", "recipient": "a public key",
	"bk-login-url": "an address of another system", "cmdb-url": "an address of another system",
	"oidc-client-id": "is given by the provider", "oidc-issuer": "an address of another system",
	"oidc-groups-claim": "is chosen by the provider", "oidc-redirect-url": "an address of this server",
	"oidc-scope": "is chosen by the provider", "trusted-proxy": "a network", "cidr": "networks", "net": "a network",
	"add": "new addresses", "remove": "addresses", "ip": "addresses of this host",
	"code": "changes every half minute", "expect": "is from an earlier output", "key": "a public key",
	"mode": "a number", "sha256": "is from an earlier output",
	"note": "a text", "remark": "a text", "version": "a version of agents", "since": "a time", "until": "a time", "name": "a new name", "cron": "a rule of times",
	"cpu": "a number with a unit", "mem": "a number with a unit", "expression": "a pattern over five fields",
	"prefix": "the beginning of a path", "signer-command": "a command with arguments", "destructive-quota-of": "a name with a number",
}
