package blueking

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

// The codes with which BlueKing's API gateway rejects a request itself. Everything else on its paths is the answer of
// the service behind it, with that service's codes.
const (
	codeGatewayApp     = 1640101
	codeGatewayUser    = 1640102
	codeGatewayGranted = 1640301
	codeGatewayPath    = 1640401
	codeGatewayMethod  = 1640501
	codeGatewayRate    = 1642902
)

// gatewayNumber is a code of the gateway with its name, which is in the answer, too.
type gatewayNumber struct {
	Number
	name string
}

var (
	gatewayMethod = gatewayNumber{Number{codeGatewayMethod, http.StatusMethodNotAllowed}, "METHOD_NOT_ALLOWED"}
	gatewayPath   = gatewayNumber{Number{codeGatewayPath, http.StatusNotFound}, "API_NOT_FOUND"}
)

// atGateway reports whether a path is one of the gateway, whatever comes after its beginning: after the stage if there is one, else
// beside the paths that are served.
func (h *Handler) atGateway(r *http.Request) bool {
	var parts []string
	for part := range strings.SplitSeq(r.URL.EscapedPath(), "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return slices.ContainsFunc(h.door.Prefixes, func(p Prefix) bool {
		if !p.Gateway {
			return false
		}
		begin := strings.Split(strings.Trim(p.Path, "/"), "/")
		if at := slices.Index(begin, "*"); at >= 0 {
			begin = begin[:at+1]
		} else {
			begin = begin[:len(begin)-1]
		}
		if len(begin) == 0 || len(parts) < len(begin) {
			return false
		}
		for i := range begin {
			if begin[i] != "*" && begin[i] != parts[i] {
				return false
			}
		}
		return true
	})
}

// unidentified is an error that came up before the caller was known: at the gateway, if there is one.
type unidentified struct{ error }

// Unwrap is the error itself.
func (e unidentified) Unwrap() error { return e.error }

// gatewayNumberOf is the number of the gateway for an error; ok is false if the gateway does not reject such a request
// itself.
func gatewayNumberOf(err error) (n gatewayNumber, ok bool) {
	var early unidentified
	if !errors.As(err, &early) {
		return n, false
	}

	var e *gozzard.Error
	appKnown := errors.As(err, &e) && e.Refusal.App != "" // only the user is rejected
	kind := gozzard.KindOf(err)
	switch {
	case kind == gozzard.ErrOperatorRequired,
		appKnown && (kind == gozzard.ErrUnauthenticated || kind == gozzard.ErrCodeRequired || kind == gozzard.ErrUserForbidden):
		return gatewayNumber{Number{codeGatewayUser, http.StatusUnauthorized}, "USER_VERIFY_FAILED"}, true
	case kind == gozzard.ErrUnauthenticated:
		return gatewayNumber{Number{codeGatewayApp, http.StatusUnauthorized}, "APP_VERIFY_FAILED"}, true
	case kind == gozzard.ErrAppForbidden:
		return gatewayNumber{Number{codeGatewayGranted, http.StatusForbidden}, "APP_NO_PERMISSION"}, true
	case kind == gozzard.ErrRateLimited:
		return gatewayNumber{Number{codeGatewayRate, http.StatusTooManyRequests}, "RATE_LIMIT_RESTRICTION"}, true
	}
	return n, false
}
