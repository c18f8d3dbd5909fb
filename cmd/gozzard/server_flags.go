package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/notify"
	"github.com/gozzard/gozzard/internal/server"
)

// newRecordHelp is the help of --new-record.
const newRecordHelp = "make a new, empty record although the folder has the keys of a lost one: " +
	"tasks, definitions, accounts and hosts are gone"

// registerCluster adds the flags about several servers.
func registerCluster(f *pflag.FlagSet, o *server.ClusterOptions) {
	f.StringVar(&o.Listen, "cluster-listen", "",
		"`ADDRESS` for the other servers that share the record, as HOST:PORT (default: this server is alone)")
	f.StringVar(&o.Address, "cluster-address", "",
		"`ADDRESS` at which the other servers reach this one (default: that of --cluster-listen)")

	x := &o.External
	f.StringSliceVar(&x.URLs, "cluster-nats", nil,
		"`ADDRESS` of a NATS cluster through which the servers that share the record reach each other, in place of "+
			"--cluster-listen, as tls://HOST:PORT; several with commas between them")
	f.StringVar(&x.CA, "cluster-nats-ca", "",
		"`FILE` with the authorities (PEM) of --cluster-nats (default: those of the system)")
	f.StringVar(&x.Credentials, "cluster-nats-credentials", "",
		"`FILE` with the user of this server at --cluster-nats: JSON with user and password, or a .creds file; readable by its "+
			"owner only")
	f.StringVar(&x.Cert, "cluster-nats-cert", "", "`FILE` with the certificate of this server at --cluster-nats")
	f.StringVar(&x.Key, "cluster-nats-key", "", "`FILE` with the key of --cluster-nats-cert, readable by its owner only")
}

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

// registerKeys adds the flags about keys.
func registerKeys(f *pflag.FlagSet, o *server.KeyOptions) {
	f.StringVar(&o.Command, "signer-command", "",
		"`PROGRAM` and arguments of an external signer, which holds keys in place of the data folder")
	f.StringSliceVar(&o.Outside, "signer-keys", []string{"signing"},
		"`KEYS` that are made in the external signer: signing, authority")
	f.DurationVar(&o.Life, "certificate-life", 24*time.Hour,
		"how long the certificate of a host is valid; the host renews it after two thirds of that time")
}

// registerSecondPerson adds the flags about acts that need a second person.
func registerSecondPerson(f *pflag.FlagSet, o *server.SecondPersonOptions) {
	f.StringSliceVar(&o.For, "second-person", nil,
		"`ACTS` that another person must approve: admin-grants, revoked-hosts (a token for one), "+
			"root-hosts=N (commands of root on more than N hosts in an hour)")
	f.DurationVar(&o.Wait, "second-person-wait", 24*time.Hour, "how long a request waits for another person")
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
	f.DurationVar(&o.ConsoleLife, "console-life", server.DefaultConsoleLife,
		"how long a session of the console lasts, from 5m to 744h")
	f.DurationVar(&o.ConsoleIdle, "console-idle", server.DefaultConsoleIdle,
		"how long a session of the console lasts without a request, from 1m on; an open page alone does not count")
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
		"requests per minute with wrong credentials from one address, and for one name from one address, before more of "+
			"them are answered with this limit; correct credentials are always accepted; 0: no limit")

	f.IntVar(&l.Connections, "max-connections", l.Connections, "connections of one address to the API, and connections "+
		"of one address to the port of the agents that did not authenticate; 0: no limit")
	f.IntVar(&l.TotalConnections, "max-connections-total", l.TotalConnections,
		"connections of all addresses to the API; 0: no limit")
	f.IntVar(&l.AgentConnections, "max-agent-connections", l.AgentConnections,
		"connections of all agents; 0: no limit")
	f.Int64Var(&l.UnknownBytes, "max-unknown-bytes", l.UnknownBytes,
		"bytes of bodies that the server holds for all callers that it does not know yet; 0: no limit")

	f.BoolVar(&l.Proxy, "behind-proxy", false,
		"callers on this machine are a proxy; the same as --trusted-proxy 127.0.0.0/8 --trusted-proxy ::1/128")
	f.Var(&prefixes{&l.Proxies}, "trusted-proxy", "a proxy or a network of proxies, as `CIDR`: callers have the right-most "+
		"address in X-Forwarded-For that is not one of them; may be repeated")

	f.IntVar(&l.InFlight, "max-in-flight", l.InFlight, "open attempts of one app; 0: no limit")
	f.Float64Var(&l.Agent.Messages, "rate-agent", l.Agent.Messages,
		"messages per second of one agent; more are dropped, and the agent is muted; 0: no limit")
	f.Float64Var(&l.Agent.Bytes, "rate-agent-bytes", l.Agent.Bytes, "bytes per second of one agent; 0: no limit")
	f.DurationVar(&l.Agent.Mute, "mute-agent", l.Agent.Mute,
		"how long the messages of an agent are ignored after it sent too much or unreadable data, the first time")
	f.Float64Var(&l.HelloRate, "rate-hello", l.HelloRate,
		"agent sessions opened per second; other agents try again; 0: no limit")

	f.IntVar(&l.Blast.Targets, "confirm-above", l.Blast.Targets,
		"callers must confirm to stop, kill, restart, reload, unmanage or unregister more processes than this, and to write "+
			"more files; 0: never")
	f.IntVar(&l.Blast.Percent, "confirm-above-percent", l.Blast.Percent,
		"callers must confirm for more than this part of the processes that they see, from 50 on; 0: never")
	f.IntVar(&l.Blast.Quota, "destructive-quota", l.Blast.Quota,
		"processes, files and scripts that one app, and one user, may stop, kill, restart, reload, unmanage, unregister, write or "+
			"run per hour through all APIs; above it the native API asks for a confirmation, and BlueKing's APIs reject unless the app is admin of "+
			"everything; 0: no limit")
	f.StringToIntVar(&l.Blast.Quotas, "destructive-quota-of", nil,
		"a different quota for one app, as `APP=NUMBER`, or for one user, as user:NAME=NUMBER; may be repeated")
	f.IntVar(&l.RefusedQuota, "refused-quota", l.RefusedQuota, "attempts of one app on hosts that are not known or not "+
		"permitted that the server records per hour; 0: no limit")
	f.IntVar(&l.DefinitionQuota, "definition-quota", l.DefinitionQuota, "`MiB` of new or changed definitions that one app "+
		"may bring per hour through all APIs, unless it is admin of everything; 0: no limit")
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

// prefixes is a flag with networks. An address is the network of that address.
type prefixes struct{ list *[]netip.Prefix }

// Set implements pflag.Value. The configuration file gives several values with commas.
func (p *prefixes) Set(text string) error {
	for _, s := range strings.Split(text, ",") {
		n, err := netip.ParsePrefix(s)
		if a, addrErr := netip.ParseAddr(s); addrErr == nil {
			n, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return fmt.Errorf("%q: use a network such as 10.0.0.0/24 or an address", s)
		}
		*p.list = append(*p.list, n.Masked())
	}
	return nil
}

// String implements pflag.Value.
func (p *prefixes) String() string {
	if p.list == nil {
		return ""
	}
	texts := make([]string, len(*p.list))
	for i, n := range *p.list {
		texts[i] = n.String()
	}
	return strings.Join(texts, ",")
}

// Type implements pflag.Value.
func (p *prefixes) Type() string { return "CIDR" }

// registerOTLP adds the flags about the collector of traces and metrics.
func registerOTLP(f *pflag.FlagSet, o *server.OTLPOptions) {
	f.StringVar(&o.Endpoint, "otlp-endpoint", "",
		"send traces of operations to the OpenTelemetry collector at `URL`, by OTLP over HTTP (default: none are made)")
	f.StringVar(&o.Headers, "otlp-headers-file", "",
		"`FILE` with headers for the collector, such as \"Authorization: Bearer TOKEN\", readable by its owner only")
	f.StringVar(&o.CA, "otlp-ca", "",
		"`FILE` with the authorities (PEM) of the collector (default: those of the system)")
	f.Float64Var(&o.Ratio, "otlp-ratio", 1,
		"`SHARE` of operations that are traced, 0 to 1, of those whose callers do not decide about it")
	f.StringVar(&o.Callers, "otlp-callers", "follow",
		"what becomes of the trace context of a caller: `follow|link|ignore`. link begins a new trace that links to it")
	f.Float64Var(&o.Rate, "otlp-rate", 20, "`NUMBER` of operations of one app that are traced in a second, at most")
	f.DurationVar(&o.Metrics, "otlp-metrics", 0,
		"how often the metrics of /metrics are pushed to the collector; 0: never")
}

// registerNotify adds the flags about alerts to receivers.
func registerNotify(f *pflag.FlagSet, o *notify.Settings) {
	f.DurationVar(&o.HostLost, "host-lost-after", 30*time.Second,
		"how long the agent of a host is silent before the host counts as lost, from 5s to 24h")
	f.StringSliceVar(&o.Allow, "notify-allow", nil,
		"`NETWORKS` that receivers of alerts may be in although their addresses are those of this machine or its link, such as "+
			"127.0.0.0/8")
	f.StringVar(&o.Commands, "notify-commands", "",
		"`FOLDER` of programs that alerts can go to; only root and the account of the server may write to it")
	f.StringVar(&o.Account, "notify-account", "",
		"OS `ACCOUNT` of the programs of --notify-commands; a server that is root needs one")
}

// registerExport adds the flags about the live export of the audit.
func registerExport(f *pflag.FlagSet, o *server.ExportOptions) {
	f.StringVar(&o.Syslog.Address, "audit-syslog", "",
		"send the audit to the syslog receiver at `HOST:PORT`: RFC 5424 over TLS, each message with its length")
	f.StringVar(&o.Syslog.CA, "audit-syslog-ca", "",
		"`FILE` with the authorities (PEM) of the syslog receiver (default: those of the system)")
	f.StringVar(&o.Syslog.Name, "audit-syslog-name", "",
		"`NAME` in the certificate of the syslog receiver (default: the host of --audit-syslog)")
	f.StringVar(&o.Webhook, "audit-webhook", "", "post the audit to this `URL`, signed")
	f.StringVar(&o.WebhookSecret, "audit-webhook-secret-file", "",
		"`FILE` with the key of the signatures, at least 16 bytes, readable by its owner only")
	f.StringVar(&o.WebhookCA, "audit-webhook-ca", "",
		"`FILE` with the authorities (PEM) of the webhook (default: those of the system)")
	f.StringVar(&o.File, "audit-file", "", "append the audit to this `FILE`, as lines of JSON for a collector")
	f.IntVar(&o.FileSize, "audit-file-size", 100,
		"`MIB` at which the server moves the file of --audit-file away; 0: never, because logrotate does it")
	f.IntVar(&o.FileKeep, "audit-file-keep", 10, "`NUMBER` of files that were moved away to keep")
}
