package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/server"
)

// registerTrust adds the flags about certificates.
func registerTrust(f *pflag.FlagSet, o *server.TrustOptions) {
	f.BoolVar(&o.Enrol, "enrol", false, "serve agents by certificates (TLS) also on loopback; always so elsewhere")
	f.StringVar(&o.Cert, "tls-cert", "",
		"certificate `FILE` for callers of the API (default: one of the server's own authority)")
	f.StringVar(&o.Key, "tls-key", "", "`FILE` with the key of --tls-cert")
	f.StringSliceVar(&o.Names, "server-name", nil,
		"further `NAMES` and addresses of this server in its own certificate")
	f.StringVar(&o.Address, "agent-address", "",
		"`HOST:PORT` that agents are told to connect to (default: the host they joined by and the port of --agent-listen)")
}

// registerLogin adds the flags about people's logins.
func registerLogin(f *pflag.FlagSet, o *server.LoginOptions) {
	f.BoolVar(&o.Reset, "reset-admin", false,
		"make the app \"admin\" anew at this start and write its secret to credentials.json, for when nobody can get in")
	f.StringVar(&o.LoginURL, "bk-login-url", "",
		"`URL` that tells whose login a bk_token is, such as https://paas.example.com/login/accounts/is_login/")
	f.StringVar(&o.Issuer, "oidc-issuer", "", "`URL` of the OpenID Connect provider that people log in with")
	f.StringVar(&o.ClientID, "oidc-client-id", "", "`ID` of this server at the provider")
	f.StringVar(&o.Secret, "oidc-secret-file", "",
		"`FILE` with the secret of this server at the provider, readable by its owner only")
	f.StringVar(&o.Redirect, "oidc-redirect-url", "",
		"`URL` of /login/oidc/callback on this server, as the provider knows it")
	f.StringVar(&o.Claim, "oidc-claim", "email",
		"`CLAIM` that has the name of the user; an email must be verified by the provider")
}

// registerLimits adds the flags about limits.
func registerLimits(f *pflag.FlagSet, l *server.Limits) {
	*l = server.DefaultLimits()
	f.Float64Var(&l.AppRate, "rate-app", l.AppRate, "requests a second of one app; 0: any number")
	f.IntVar(&l.AppBurst, "rate-app-burst", l.AppBurst, "requests of one app at once, above its rate")
	f.IntVar(&l.Failures, "max-failed-logins", l.Failures,
		"requests with wrong credentials in a minute from one address, then it has to wait; 0: any number")
	f.IntVar(&l.Connections, "max-connections", l.Connections, "connections of one address to the API; 0: any number")
	f.BoolVar(&l.Proxy, "behind-proxy", false,
		"callers on this machine are a proxy: believe the last address of its X-Forwarded-For")
	f.IntVar(&l.InFlight, "max-in-flight", l.InFlight, "attempts of one app without a verdict; 0: any number")
	f.Float64Var(&l.Agent.Messages, "rate-agent", l.Agent.Messages,
		"messages a second of one agent, above which they are dropped and it is muted; 0: any number")
	f.Float64Var(&l.Agent.Bytes, "rate-agent-bytes", l.Agent.Bytes, "and bytes a second; 0: any number")
	f.DurationVar(&l.Agent.Mute, "mute-agent", l.Agent.Mute,
		"how long an agent is not listened to that sends too much or what cannot be read, at first")
	f.Float64Var(&l.HelloRate, "rate-hello", l.HelloRate,
		"sessions of agents opened in a second; others repeat their HELLO; 0: any number")
	f.IntVar(&l.Blast.Targets, "confirm-above", l.Blast.Targets,
		"stopping, killing or restarting more processes than that has to be confirmed; 0: never")
	f.IntVar(&l.Blast.Percent, "confirm-above-percent", l.Blast.Percent,
		"and so has more than this part of what the caller sees, from 50 on; 0: never")
	f.IntVar(&l.Blast.Quota, "destructive-quota", l.Blast.Quota,
		"processes that one app may stop, kill or restart in an hour by BlueKing's APIs, unless it may do everything; 0: any number")
	f.StringToIntVar(&l.Blast.Quotas, "destructive-quota-of", nil, "another quota for an `APP=NUMBER`; may be repeated")
}

// registerCMDB adds the flags about BlueKing CMDB.
func registerCMDB(f *pflag.FlagSet, o *server.CMDBOptions) {
	f.StringVar(&o.URL, "cmdb-url", "",
		"`URL` of the BlueKing bus whose CMDB knows the businesses, such as https://paas.example.com")
	f.StringVar(&o.Credentials, "cmdb-credentials", "",
		"JSON `FILE` with bk_app_code, bk_app_secret and bk_username for CMDB, readable by its owner only")
	f.IntSliceVar(&o.Businesses, "cmdb-biz", nil,
		"`ID` of a business to read from CMDB again and again; may be repeated")
	f.DurationVar(&o.Interval, "cmdb-interval", 10*time.Minute, "how often each of these businesses is read")
	f.BoolVar(&o.Prune, "cmdb-prune", false,
		"also remove processes that are gone from CMDB and still hosted: they are unregistered and left running")
}

// registerBackup adds the flags about the server's own backups.
func registerBackup(f *pflag.FlagSet, o *server.BackupOptions) {
	f.StringVar(&o.To, "backup-to", "", "make encrypted backups by itself, in this `FOLDER` (default: none are made)")
	f.DurationVar(&o.Every, "backup-every", 24*time.Hour, "how often, at least a minute apart")
	f.IntVar(&o.Keep, "backup-keep", 7, "how many of them stay")
	f.StringSliceVar(&o.Recipients, "backup-recipient", nil,
		"public `KEYS` (age1…) they are encrypted for; gozzard backup keygen makes one")
}

// registerRelease adds the flags about releases.
func registerRelease(f *pflag.FlagSet, o *server.ReleaseOptions) {
	f.StringVar(&o.Key, "release-key", "",
		"`FILE` with the public release key (PEM): releases that it has not signed are not even published; hosts check by their own key anyway")
	f.BoolVar(&o.TwoPerson, "release-two-person", false,
		"a roll of a release begins only when another person has approved it")
	f.DurationVar(&o.Patience, "release-patience", 5*time.Minute,
		"how long a host may take from being asked until it is welcomed with a release; then the roll stops")
}
