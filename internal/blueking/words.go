package blueking

import (
	"errors"
	"net/http"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/language"
)

// Words are the messages of one answer, in the language of its caller.
type Words struct {
	// Language is Unsaid if the caller asked for none. The answer is then as it always was: English, but for the
	// sentences of GSEKit.
	Language language.Language
	chinese  *language.Catalogue
}

// maxTag limits what is read as the name of a language.
const maxTag = 64

// languageOf looks where BlueKing's tools name a language, then where browsers do.
func languageOf(r *http.Request) language.Language {
	if tag := r.Header.Get("Blueking-Language"); len(tag) <= maxTag {
		if l := language.Parse(tag); l != language.Unsaid {
			return l
		}
	}
	if cookie, err := r.Cookie("blueking_language"); err == nil && len(cookie.Value) <= maxTag {
		if l := language.Parse(cookie.Value); l != language.Unsaid {
			return l
		}
	}
	return language.Accept(r.Header.Get("Accept-Language"))
}

// Message is a finished message in the language of the caller.
func (w Words) Message(text string) string {
	if w.Language != language.Chinese {
		return text
	}
	return w.chinese.Message(text)
}

// Error is what the caller sees of an error: the message and the faults, never the cause, which may contain names of
// files and hosts.
func (w Words) Error(err error) string {
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Kind == gozzard.ErrInternal {
		return w.Message(internalText)
	}

	public := gozzard.Error{Message: w.Message(e.Message), Faults: make([]gozzard.Fault, len(e.Faults))}
	for i, f := range e.Faults {
		public.Faults[i] = gozzard.Fault{Path: f.Path, Text: w.Message(f.Text)}
	}
	if s := strings.ToValidUTF8(public.Error(), "\uFFFD"); s != "" {
		return s
	}
	return string(e.Kind)
}

// Text is what a caller that asked for no language sees of an error.
func Text(err error) string { return Words{}.Error(err) }
