package fleettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Provider is an OpenID Connect provider on loopback, where a@example.com is always logged in. It accepts each code
// once and checks its PKCE challenge, as real providers do.
type Provider struct {
	URL string
	// Claims changes the claims about the user; nil changes nothing.
	Claims func(claims map[string]any)
	// Forged makes it sign tokens with a key that is not the provider's.
	Forged bool

	t   testing.TB
	key *ecdsa.PrivateKey

	mu     sync.Mutex
	logins map[string]providerLogin // by their codes
}

// providerLogin is a login that waits for the browser to come back with a code.
type providerLogin struct{ nonce, challenge, redirect string }

// ProviderCode is the code of the last Visit. It may be used several times.
const ProviderCode = "code"

// NewProvider runs a provider until the test ends.
func NewProvider(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t, key: newKey(t), logins: map[string]providerLogin{}}
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	p.URL = srv.URL
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.reply(w, http.StatusOK, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth",
			"token_endpoint": p.URL + "/token",
			"jwks_uri":       p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})

	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		point, err := p.key.PublicKey.Bytes() // 4, x, y
		if err != nil {
			t.Error(err)
		}
		key := map[string]string{"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig",
			"x": b64(point[1:33]), "y": b64(point[33:])}
		p.reply(w, http.StatusOK, map[string]any{"keys": []any{key}})
	})

	mux.HandleFunc("/auth", p.authorize)
	mux.HandleFunc("/token", p.token)
	return p
}

// authorize sends a browser back with a code, as if its user had just logged in.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Host == "" || !complete(q) {
		p.reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}

	code := rand.Text()
	p.mu.Lock()
	p.logins[code] = providerLogin{q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")}
	p.mu.Unlock()

	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token exchanges a code for an ID token, once, if the client has the verifier of the code's challenge.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	code := r.FormValue("code")
	p.mu.Lock()
	login, known := p.logins[code]
	if code != ProviderCode {
		delete(p.logins, code)
	}
	p.mu.Unlock()

	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	sameClient := login.redirect == "" || login.redirect == r.FormValue("redirect_uri")
	if !known || b64(sum[:]) != login.challenge || !sameClient {
		p.reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	p.reply(w, http.StatusOK, map[string]any{"access_token": "x", "token_type": "Bearer",
		"id_token": p.idToken(login.nonce)})
}

// complete reports whether a request has everything that a login by code with PKCE needs.
func complete(q url.Values) bool {
	return q.Get("code_challenge_method") == "S256" && q.Get("code_challenge") != "" &&
		q.Get("response_type") == "code" && q.Get("client_id") == "gozzard" && q.Get("nonce") != "" && q.Get("state") != ""
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (p *Provider) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

func (p *Provider) idToken(nonce string) string {
	claims := map[string]any{"iss": p.URL, "aud": "gozzard", "sub": "subject-1", "nonce": nonce,
		"email": "a@example.com", "email_verified": true,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}

	if p.Claims != nil {
		p.Claims(claims)
	}

	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}

	key := p.key

	if p.Forged {
		key = newKey(p.t)
	}

	text := b64([]byte(`{"alg":"ES256","kid":"1"}`)) + "." + b64(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		p.t.Error(err)
	}

	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return text + "." + b64(sig[:])
}

// Visit does what a browser does with the address that it is sent to: it comes back with ProviderCode and this state.
func (p *Provider) Visit(address string) (state string) {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	q := u.Query()
	if !complete(q) {
		p.t.Fatalf("a person is sent to %s", address)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logins[ProviderCode] = providerLogin{nonce: q.Get("nonce"), challenge: q.Get("code_challenge")}
	return q.Get("state")
}
