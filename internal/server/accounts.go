package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
)

// DefaultTokenAge is how old tokens of users become when the options do not say it.
const DefaultTokenAge = auth.DefaultTokenAge

// How long a session of the console lasts when the options do not say it.
const (
	DefaultConsoleLife = auth.SessionLife
	DefaultConsoleIdle = auth.DefaultIdle
)

// LoginOptions name the services that people log in with, and say whether the first app is made again.
type LoginOptions struct {
	LoginURL string // URL of BlueKing's login service; "": none
	Insecure bool   // the login service may be asked without TLS beyond this machine
	Issuer   string // URL of the OpenID Connect provider; "": none
	ClientID string
	Secret   string // file with the client secret
	Redirect string // URL of /login/oidc/callback on this server
	Claim    string // that names the user
	Groups   string // claim that has the groups of the user; "": none
	Scopes   []string
	Reset    bool // make the first app again

	MaxTokenAge time.Duration // of personal tokens and sessions; 0: each has only its own end
	ConsoleLife time.Duration // of sessions of the console; 0: DefaultConsoleLife
	ConsoleIdle time.Duration // without a request; 0: DefaultConsoleIdle
	RequireTOTP string        // which passwords need a second factor: "", admins or all
}

// accounts are the options of the accounts.
func (o *LoginOptions) accounts(log *slog.Logger) (auth.Options, error) {
	if o.MaxTokenAge < 0 || o.MaxTokenAge > auth.MaxTokenLife || o.MaxTokenAge > 0 && o.MaxTokenAge < time.Hour {
		return auth.Options{}, fmt.Errorf("--max-token-age: %s is neither 0 nor between 1h and %s", o.MaxTokenAge,
			auth.MaxTokenLife)
	}
	age := o.MaxTokenAge
	if age == 0 {
		age = -1
	}
	if o.ConsoleLife != 0 && (o.ConsoleLife < 5*time.Minute || o.ConsoleLife > 31*24*time.Hour) {
		return auth.Options{}, fmt.Errorf("--console-life: %s is not between 5m and 744h", o.ConsoleLife)
	}
	if o.ConsoleIdle != 0 && o.ConsoleIdle < time.Minute {
		return auth.Options{}, fmt.Errorf("--console-idle: %s is less than 1m", o.ConsoleIdle)
	}
	required := auth.Required(o.RequireTOTP)
	if !required.Valid() {
		return auth.Options{}, fmt.Errorf("--require-totp: %q is not admins or all", o.RequireTOTP)
	}

	v, err := o.verifier()
	if err != nil {
		return auth.Options{}, err
	}
	if o.Insecure && o.LoginURL != "" {
		log.Warn("logins are checked without TLS: anyone on the way to the login service can act as any user",
			"url", o.LoginURL)
	}

	return auth.Options{Verify: v, MaxTokenAge: age, RequireTOTP: required, Provider: o.Issuer != "",
		ConsoleLife: o.ConsoleLife, ConsoleIdle: o.ConsoleIdle}, nil
}

// verifier asks the login service; nil without one.
func (o *LoginOptions) verifier() (auth.TokenVerifier, error) {
	if o.LoginURL == "" {
		return nil, nil
	}
	s, err := blueking.NewLoginService(o.LoginURL, nil)
	if err != nil {
		return nil, fmt.Errorf("--bk-login-url: %w", err)
	}

	u, err := url.Parse(o.LoginURL)
	if err != nil || u.Scheme != "https" && !o.Insecure && !auth.Loopback(u.Hostname()) {
		return nil, fmt.Errorf("--bk-login-url %s: use https beyond this machine, because the answer decides about the user; "+
			"--bk-login-insecure allows http", o.LoginURL)
	}
	return s, nil
}

// provider is where people log in; nil without an issuer.
func (o *LoginOptions) provider() (*auth.Provider, error) {
	if o.Issuer == "" {
		return nil, nil
	}

	po := auth.ProviderOptions{Issuer: o.Issuer, ClientID: o.ClientID, RedirectURL: o.Redirect, Claim: o.Claim,
		GroupsClaim: o.Groups, Scopes: o.Scopes}

	if o.Secret != "" {
		if err := atomicfile.Check(o.Secret); err != nil {
			return nil, err
		}
		b, err := os.ReadFile(o.Secret)
		if err != nil {
			return nil, fmt.Errorf("cannot read the secret of the login provider: %w", err)
		}
		po.ClientSecret = strings.TrimSpace(string(b))
	}

	p, err := auth.NewProvider(po)
	if err != nil {
		return nil, fmt.Errorf("--oidc-issuer, --oidc-client-id and --oidc-redirect-url: %w", err)
	}

	return p, nil
}

// openAccounts reads apps, users and grants.
func (s *Server) openAccounts(ctx context.Context) error {
	o, err := s.options.Login.accounts(s.options.Log)
	if err != nil {
		return err
	}
	o.Refused, o.Assigned = s.metrics.ReportRefused, s.plane.Assigned
	o.SecondPerson, o.Ask = s.second.admin, s.askGrant
	s.accounts, err = auth.Open(ctx, s.store, o)
	var old *auth.UnresolvedError
	if errors.As(err, &old) {
		return fmt.Errorf("%w\n%s", err, resolveHelp(s.options.Data, old.Grants))
	}
	return err
}

// checkAccounts says which accounts of earlier versions an admin has to look at: apps that give their rights to people
// that the record does not know, and tokens that end earlier than they say.
func (s *Server) checkAccounts(context.Context) error {
	if n := s.accounts.Shortened(); n > 0 {
		s.options.Log.Warn("tokens of users end earlier than they say, by --max-token-age", "tokens", n,
			"age", s.accounts.MaxTokenAge())
	}
	for _, code := range s.accounts.Undecided() {
		s.options.Log.Warn("people that are not known here have the rights of this app, as in earlier versions: "+
			"decide with \"gozzard app set APP --unknown-users=true\" or \"=false\"", "app", code)
	}
	return nil
}

// rightsLater are the rights of a caller whose work goes on after its request: a session that ended does not stop it.
func (s *Server) rightsLater(c gozzard.Caller) *gozzard.Rights {
	c.Session = ""
	return s.accounts.Directory().RightsOf(c)
}

// firstAppCode is the app that a new server makes.
const firstAppCode = "admin"

// firstAccounts gives a new record its first accounts: the given app, those of an older version's apps.json, or a new
// app that may do everything. With --reset-admin it makes that app in any case.
func (s *Server) firstAccounts(ctx context.Context) error {
	imported := func(c auth.Config) error { return s.accounts.Import(ctx, c) }
	replaced := func(app auth.App) error { return s.accounts.ReplaceApp(ctx, system(), app) }

	// An app was given.
	if s.options.FirstApp.Code != "" {
		return s.givenApp(imported, replaced)
	}

	// The record has accounts.
	if s.accounts.Known() {
		if s.options.Login.Reset {
			return s.firstApp(replaced)
		}
		return nil
	}

	// The record is new: take over the apps of an older version, or make one.
	old, err := readApps(filepath.Join(s.options.Data, "apps.json"))
	if err != nil {
		return err
	}
	if old == nil {
		return s.newApp(func(app auth.App) error { return imported(auth.Config{Apps: []auth.App{app}}) })
	}
	if err := imported(*old); err != nil {
		return err
	}
	s.options.Log.Info("imported the apps of an older version; apps.json is not read any more", "apps", len(old.Apps))
	return nil
}

// givenApp records the app of the options, unless it is known with its secret.
func (s *Server) givenApp(imported func(auth.Config) error, replaced func(auth.App) error) error {
	code, secret := s.options.FirstApp.Code, s.options.FirstApp.Secret
	app := trustedApp(code, secret)
	if !s.accounts.Known() {
		return imported(auth.Config{Apps: []auth.App{app}})
	}
	if _, err := s.accounts.Directory().CheckApp(auth.Credentials{App: code, Secret: secret}); err == nil {
		return nil
	}
	return replaced(app)
}

// newApp gives a new record its app: the one of credentials.json if the record replaces a lost one, or else a new one.
func (s *Server) newApp(record func(auth.App) error) error {
	if s.replaced {
		if kept, err := s.keepCredentials(record); kept || err != nil {
			return err
		}
	}
	return s.firstApp(record)
}

// firstApp makes an app that may do everything and writes its secret to a file. The file is written before the app
// is recorded: a server that ends between the two makes another secret at its next start.
func (s *Server) firstApp(record func(auth.App) error) error {
	secret := auth.NewSecret()
	path := filepath.Join(s.options.Data, "credentials.json")
	c := Credentials{URL: s.URL(), AppCode: firstAppCode, Secret: secret, Username: "admin", CA: s.authorityPEM()}
	if err := c.Write(path); err != nil {
		return err
	}
	if err := record(trustedApp(firstAppCode, secret)); err != nil {
		return err
	}
	s.options.Log.Info("made the first app", "credentials", path)
	return nil
}

// readApps reads the file in which versions before accounts kept their apps; nil when there is none.
func readApps(path string) (*auth.Config, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the apps: %w", err)
	}
	var c auth.Config
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("cannot read the apps in %s: %w", path, err)
	}
	return &c, nil
}

// trustedApp is an app that may name its users and do everything.
func trustedApp(code, secret string) auth.App {
	return auth.App{Code: code, Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true,
		UnknownUsers: new(true), Grants: gozzard.Everything().Grants}
}
