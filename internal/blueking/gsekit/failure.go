package gsekit

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
)

// The error codes: 41, then two digits for the part and three for the error.
const (
	codeInvalid       = 4100001
	codeUnreachable   = 4100015
	codeForbidden     = 4100403
	codeNotFound      = 4100404
	codeRateLimited   = 4100429
	codeInternal      = 4100500
	codeTemplate      = 4101004
	codeJobAction     = 4102002
	codeNoJob         = 4102005
	codeNoTask        = 4102006
	codeNothing       = 4102007
	codeRetryRefused  = 4102008
	codeTimeout       = 4103001
	codeGSE           = 4103002
	codeEarlierFailed = 4103003
	codeMissing       = 4104002
	codeExpression    = 4111001
)

// failure is an error with a code of this API, in the language of the caller.
type failure struct {
	code int
	text string
	kind gozzard.ErrorKind
}

func fail(code int, text string) *failure {
	return &failure{code: code, text: text, kind: gozzard.ErrInvalid}
}

// Error is the error for logs.
func (f *failure) Error() string { return fmt.Sprintf("[%d] %s", f.code, f.text) }

// Unwrap is an error with the kind: errors that the caller can correct are not logged.
func (f *failure) Unwrap() error { return gozzard.Errorf(f.kind, "%s", f.text) }

// numberOf is the table of error kinds and codes.
func numberOf(kind gozzard.ErrorKind) blueking.Number {
	switch kind {
	case gozzard.ErrInvalid, gozzard.ErrConflict:
		return blueking.Number{Code: codeInvalid, Status: http.StatusBadRequest}
	case gozzard.ErrUnauthenticated, gozzard.ErrCodeRequired, gozzard.ErrOperatorRequired, gozzard.ErrUserForbidden,
		gozzard.ErrAppForbidden:
		return blueking.Number{Code: codeForbidden, Status: http.StatusForbidden}
	case gozzard.ErrNotFound:
		return blueking.Number{Code: codeNotFound, Status: http.StatusNotFound}
	case gozzard.ErrRateLimited:
		return blueking.Number{Code: codeRateLimited, Status: http.StatusTooManyRequests}
	case gozzard.ErrUnavailable:
		return blueking.Number{Code: codeUnreachable, Status: http.StatusServiceUnavailable}
	}
	return blueking.Number{Code: codeInternal, Status: http.StatusInternalServerError}
}

// describeError is the number and the text of an error. Errors of this door are Chinese unless the caller asks for
// English; errors of other parts are English unless the caller asks for Chinese.
func describeError(w blueking.Words, err error) (blueking.Number, string) {
	n := numberOf(gozzard.KindOf(err))
	var f *failure
	if errors.As(err, &f) {
		n.Code = f.code
		return n, f.text
	}
	if n.Code == codeInternal {
		return n, speech{w}.say(sayInternal)
	}
	return n, w.Error(err)
}
