package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
)

// loginConfig is how people prove themselves elsewhere.
type loginConfig struct {
	LoginURL string // login service of BlueKing
	Issuer   string
	ClientID string
	Secret   string // file
	Redirect string
	Claim    string
	Reset    bool // make the first app anew
}

func (c *loginConfig) register(f *pflag.FlagSet) {
	f.BoolVar(&c.Reset, "reset-admin", false,
		"make the app \"admin\" anew at this start and write its secret to credentials.json, for when nobody can get in")
	f.StringVar(&c.LoginURL, "bk-login-url", "",
		"`URL` that tells whose login a bk_token is, such as https://paas.example.com/login/accounts/is_login/")
	f.StringVar(&c.Issuer, "oidc-issuer", "", "`URL` of the OpenID Connect provider that people log in with")
	f.StringVar(&c.ClientID, "oidc-client-id", "", "`ID` of this server at the provider")
	f.StringVar(&c.Secret, "oidc-secret-file", "",
		"`FILE` with the secret of this server at the provider, readable by its owner only")
	f.StringVar(&c.Redirect, "oidc-redirect-url", "",
		"`URL` of /login/oidc/callback on this server, as the provider knows it")
	f.StringVar(&c.Claim, "oidc-claim", "email",
		"`CLAIM` that has the name of the user; an email must be verified by the provider")
}

// verifier is nil without a login service.
func (c *loginConfig) verifier() (auth.TokenVerifier, error) {
	if c.LoginURL == "" {
		return nil, nil
	}
	s, err := blueking.NewLoginService(c.LoginURL, nil)
	if err != nil {
		return nil, fmt.Errorf("--bk-login-url: %w", err)
	}
	return s, nil
}

// provider is nil without an issuer.
func (c *loginConfig) provider() (*auth.Provider, error) {
	if c.Issuer == "" {
		return nil, nil
	}

	o := auth.ProviderOptions{Issuer: c.Issuer, ClientID: c.ClientID, RedirectURL: c.Redirect, Claim: c.Claim}

	if c.Secret != "" {
		if err := atomicfile.Check(c.Secret); err != nil {
			return nil, err
		}
		b, err := os.ReadFile(c.Secret)
		if err != nil {
			return nil, fmt.Errorf("cannot read the secret of the login provider: %w", err)
		}
		o.ClientSecret = strings.TrimSpace(string(b))
	}

	p, err := auth.NewProvider(o)
	if err != nil {
		return nil, fmt.Errorf("--oidc-issuer, --oidc-client-id and --oidc-redirect-url: %w", err)
	}

	return p, nil
}

// openAccounts reads who may ask.
func (c *loginConfig) openAccounts(ctx context.Context, s auth.Store, refused func(rule string)) (*auth.Accounts,
	error) {
	v, err := c.verifier()
	if err != nil {
		return nil, err
	}
	return auth.Open(ctx, s, auth.Options{Verify: v, Refused: refused})
}

const firstAppCode = "admin"

// firstAccounts gives a new record its first accounts: those of an older version's apps.json, or one app that may
// do everything. With --reset-admin it makes that app whatever there is.
func (n *node) firstAccounts(ctx context.Context) error {
	if n.accounts.Known() {
		if n.cfg.Login.Reset {
			return n.firstApp(func(app auth.App) error {
				return n.accounts.ReplaceApp(ctx,
					gozzard.Caller{App: "gozzard"}, app)
			})
		}
		return nil
	}

	old, err := readApps(filepath.Join(n.cfg.Data, "apps.json"))
	if err != nil {
		return err
	}

	if old != nil {
		if err := n.accounts.Import(ctx, *old); err != nil {
			return err
		}
		n.cfg.Log.Info("took over the apps of an older version; apps.json is not read any more", "apps", len(old.Apps))
		return nil
	}

	return n.firstApp(func(app auth.App) error { return n.accounts.Import(ctx, auth.Config{Apps: []auth.App{app}}) })
}

// firstApp makes an app that may do everything and writes its secret to a file. The file is written before the app
// is recorded: a server that ends between the two makes another secret at its next start.
func (n *node) firstApp(record func(auth.App) error) error {
	secret := auth.NewSecret()
	path := filepath.Join(n.cfg.Data, "credentials.json")
	c := credentials{URL: n.URL(), AppCode: firstAppCode, Secret: secret, Username: "admin", CA: n.authorityPEM()}
	if err := writePrivateJSON(path, c); err != nil {
		return err
	}
	if err := record(trustedApp(firstAppCode, secret)); err != nil {
		return err
	}
	n.cfg.Log.Info("made the first app", "credentials", path)
	return nil
}

// readApps reads the apps that a version before accounts has kept; nil when there is no such file.
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
		Grants: gozzard.Everything().Grants}
}

// devAccounts lets the app of `gozzard dev` in, with the secret that is kept beside the record.
func (n *node) devAccounts(ctx context.Context, code, secret string) error {
	app := trustedApp(code, secret)
	if !n.accounts.Known() {
		return n.accounts.Import(ctx, auth.Config{Apps: []auth.App{app}})
	}
	if _, err := n.accounts.Directory().CheckApp(auth.Credentials{App: code, Secret: secret}); err == nil {
		return nil
	}
	return n.accounts.ReplaceApp(ctx, gozzard.Caller{App: "gozzard"}, app)
}
