package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/server"
)

// newRecordHelp is the help of --new-record.
const newRecordHelp = "make a new, empty record although the folder has the keys of a lost one: " +
	"tasks, definitions, accounts and hosts are gone"

// registerTrust adds the flags about certificates.
func registerTrust(f *pflag.FlagSet, o *server.TrustOptions) {
	f.BoolVar(&o.Enrol, "enrol", false,
		"require TLS with certificates from agents on loopback too; on other addresses this is always so")
	f.StringVar(&o.Cert, "tls-cert", "",
		"certificate `FILE` of the API (default: made by the authority of this server)")
	f.StringVar(&o.Key, "tls-key", "", "`FILE` with the key of --tls-cert")
	f.StringSliceVar(&o.Names, "server-name", nil,
		"more `NAMES` and addresses for the certificate that this server makes")
	f.StringVar(&o.Address, "agent-address", "",
		"`HOST:PORT` that agents connect to (default: the host that they joined with and the port of --agent-listen)")
}

// registerLogin adds the flags about the logins of users.
func registerLogin(f *pflag.FlagSet, o *server.LoginOptions) {
	f.BoolVar(&o.Reset, "reset-admin", false,
		"create the app \"admin\" again and write its secret to credentials.json, if all credentials are lost")
	f.StringVar(&o.LoginURL, "bk-login-url", "",
		"`URL` that checks a bk_token and returns its user, such as https://paas.example.com/login/accounts/is_login/")
	f.BoolVar(&o.Insecure, "bk-login-insecure", false,
		"allow http in --bk-login-url beyond this machine: anyone on the way can act as any user")
	f.DurationVar(&o.MaxTokenAge, "max-token-age", server.DefaultTokenAge,
		"how old the tokens of users may become, also those that were made before, from 1h to 8784h; "+
			"0: each has only its own end")
	f.StringVar(&o.RequireTOTP, "require-totp", "",
		"users with a password need a second factor: `WHICH` is admins (of everything) or all (default: none need it)")
	f.StringVar(&o.Issuer, "oidc-issuer", "", "`URL` of the OpenID Connect provider for logins of people")
	f.StringVar(&o.ClientID, "oidc-client-id", "", "`ID` of this server at the provider")
	f.StringVar(&o.Secret, "oidc-secret-file", "",
		"`FILE` with the secret of this server at the provider, readable by its owner only")
	f.StringVar(&o.Redirect, "oidc-redirect-url", "",
		"`URL` of /login/oidc/callback on this server, as the provider knows it")
	f.StringVar(&o.Claim, "oidc-claim", "email",
		"`CLAIM` that has the name of the user; an email must be verified by the provider")
	f.StringVar(&o.Groups, "oidc-groups-claim", "",
		"`CLAIM` that has the groups of the user; \"gozzard grant add --group\" gives them grants")
	f.StringSliceVar(&o.Scopes, "oidc-scope", nil,
		"`SCOPE` to ask the provider for, beside openid, profile and email; may be repeated")
}

// registerLimits adds the flags about limits.
func registerLimits(f *pflag.FlagSet, l *server.Limits) {
	*l = server.DefaultLimits()
	f.Float64Var(&l.AppRate, "rate-app", l.AppRate, "requests per second of one app; 0: no limit")
	f.IntVar(&l.AppBurst, "rate-app-burst", l.AppBurst, "requests that one app may send at once, above its rate")
	f.IntVar(&l.Failures, "max-failed-logins", l.Failures,
		"requests per minute with wrong credentials from one address before it must wait; 0: no limit")
	f.IntVar(&l.Connections, "max-connections", l.Connections, "connections of one address to the API; 0: no limit")
	f.BoolVar(&l.Proxy, "behind-proxy", false,
		"callers on this machine are a proxy: use the last address in X-Forwarded-For")
	f.IntVar(&l.InFlight, "max-in-flight", l.InFlight, "open attempts of one app; 0: no limit")
	f.Float64Var(&l.Agent.Messages, "rate-agent", l.Agent.Messages,
		"messages per second of one agent; more are dropped, and the agent is muted; 0: no limit")
	f.Float64Var(&l.Agent.Bytes, "rate-agent-bytes", l.Agent.Bytes, "bytes per second of one agent; 0: no limit")
	f.DurationVar(&l.Agent.Mute, "mute-agent", l.Agent.Mute,
		"how long the messages of an agent are ignored after it sent too much or unreadable data, the first time")
	f.Float64Var(&l.HelloRate, "rate-hello", l.HelloRate,
		"agent sessions opened per second; other agents try again; 0: no limit")
	f.IntVar(&l.Blast.Targets, "confirm-above", l.Blast.Targets,
		"callers must confirm to stop, kill or restart more processes than this; 0: never")
	f.IntVar(&l.Blast.Percent, "confirm-above-percent", l.Blast.Percent,
		"callers must confirm for more than this part of the processes that they see, from 50 on; 0: never")
	f.IntVar(&l.Blast.Quota, "destructive-quota", l.Blast.Quota,
		"processes that one app may stop, kill or restart per hour through BlueKing's APIs, "+
			"unless it is admin of everything; 0: no limit")
	f.StringToIntVar(&l.Blast.Quotas, "destructive-quota-of", nil,
		"a different quota for one app, as `APP=NUMBER`; may be repeated")
}

// registerCMDB adds the flags about BlueKing CMDB.
func registerCMDB(f *pflag.FlagSet, o *server.CMDBOptions) {
	f.StringVar(&o.URL, "cmdb-url", "",
		"`URL` of the BlueKing bus with the CMDB, such as https://paas.example.com")
	f.StringVar(&o.Credentials, "cmdb-credentials", "",
		"JSON `FILE` with bk_app_code, bk_app_secret and bk_username for CMDB, readable by its owner only")
	f.IntSliceVar(&o.Businesses, "cmdb-biz", nil,
		"`ID` of a business to read from CMDB at an interval; may be repeated")
	f.DurationVar(&o.Interval, "cmdb-interval", 10*time.Minute, "how often each of these businesses is read")
	f.BoolVar(&o.Prune, "cmdb-prune", false,
		"also remove processes that are gone from CMDB but still supervised: they are unregistered and keep running")
}

// registerBackup adds the flags about the backups that the server makes.
func registerBackup(f *pflag.FlagSet, o *server.BackupOptions) {
	f.StringVar(&o.To, "backup-to", "", "make encrypted backups in this `FOLDER` (default: no backups)")
	f.DurationVar(&o.Every, "backup-every", 24*time.Hour, "time between backups, at least one minute")
	f.IntVar(&o.Keep, "backup-keep", 7, "number of backups to keep")
	f.StringSliceVar(&o.Recipients, "backup-recipient", nil,
		"public `KEYS` (age1…) that backups are encrypted for; \"gozzard backup keygen\" makes one")
}

// registerRelease adds the flags about releases.
func registerRelease(f *pflag.FlagSet, o *server.ReleaseOptions) {
	f.StringVar(&o.Key, "release-key", "",
		"`FILE` with the public release key (PEM): the server rejects releases that it did not sign; "+
			"hosts always check with their own key")
	f.BoolVar(&o.TwoPerson, "release-two-person", false,
		"an upgrade begins only after another person approved it")
	f.DurationVar(&o.Patience, "release-patience", 5*time.Minute,
		"how long one host may take to install a release and connect with it; then the upgrade stops")
}
