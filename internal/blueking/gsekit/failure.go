package gsekit

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
)

// The error codes: 41, then two digits for the part and three for the error.
const (
	codeInvalid       = 4100001
	codeUnreachable   = 4100015
	codeForbidden     = 4100403
	codeNotFound      = 4100404
	codeRateLimited   = 4100429
	codeInternal      = 4100500
	codeNoTemplate    = 4101001
	codeNoVersion     = 4101002
	codeDraftExists   = 4101003
	codeTemplate      = 4101004
	codeNoInstance    = 4101005
	codeUnsafe        = 4101007
	codeSameName      = 4101008
	codeNoActive      = 4101009
	codeContent       = 4101011
	codeJobAction     = 4102002
	codeNoJob         = 4102005
	codeNoTask        = 4102006
	codeNothing       = 4102007
	codeRetryRefused  = 4102008
	codeTimeout       = 4103001
	codeGSE           = 4103002
	codeEarlierFailed = 4103003
	codeHostFile      = 4103004
	codeNotMade       = 4103005
	codeAbsent        = 4103006
	codeDiffers       = 4103007
	codeNoProcess     = 4104001
	codeMissing       = 4104002
	codeNoProcessInst = 4104003
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
	var c *record.ConfigFault
	if errors.As(err, &c) {
		return configFault(w, c)
	}
	if n.Code == codeInternal {
		return n, speech{w}.say(sayInternal)
	}
	return n, w.Error(err)
}

// configFault is the number and the text of an error of configuration files.
func configFault(w blueking.Words, c *record.ConfigFault) (blueking.Number, string) {
	n, l := numberOf(gozzard.KindOf(c)), speech{w}
	switch c.Kind {
	case record.ConfigNoTemplate:
		n.Code = codeNoTemplate
		return n, l.say(sayNoTemplate)
	case record.ConfigNoVersion:
		n.Code = codeNoVersion
		return n, l.say(sayNoVersion)
	case record.ConfigDraftExists:
		n.Code = codeDraftExists
		return n, l.say(sayDraftExists)
	case record.ConfigNoInstance:
		n.Code = codeNoInstance
		return n, l.say(sayNoInstance)
	case record.ConfigSameName:
		n.Code = codeSameName
		return n, l.say(saySameName, c.Name)
	case record.ConfigUnsafe:
		n.Code = codeUnsafe
		return n, c.Name
	case record.ConfigHelpInside:
		n.Code = codeContent
		return n, l.say(sayHelpInside)
	case record.ConfigBothStates:
		return n, l.say(sayBothStates)
	case record.ConfigBlank:
		return n, l.say(sayWhiteSpace)
	case record.ConfigBadMode:
		return n, l.say(sayBadMode, c.Name)
	case record.ConfigBadAccount:
		return n, l.say(sayBadAccount, c.Name)
	case record.ConfigNoActive:
		n.Code = codeNoActive
		return n, l.say(sayNoActive, c.Name)
	case record.ConfigNoInclude:
		n.Code = codeNoTemplate
		return n, l.say(sayNoInclude, c.Name)
	case record.ConfigNoProcess:
		n.Code = codeNoProcess
		return n, l.say(sayNoProcess, c.Name)
	case record.ConfigNoProcessInstance:
		n.Code = codeNoProcessInst
		return n, l.say(sayNoProcessInst, c.Name)
	case record.ConfigUnrendered:
		n.Code = codeTemplate
		return n, l.say(sayRenderFault, strconv.Itoa(c.Line), c.Source, c.Name)
	}
	return n, w.Error(c.Err)
}
