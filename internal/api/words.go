package api

import (
	"net/http"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/language"
)

// chinese is read when the first caller asks for it. It has the texts of the command line too: those of the server's
// checks are among them.
var chinese = sync.OnceValue(language.CommandLine)

// inLanguageOf turns messages for people into the language that a request asks for by Accept-Language. Without one they stay
// English, and so do words for programs, such as kinds, states and paths.
func inLanguageOf(r *http.Request) func(string) string {
	if language.Accept(r.Header.Get("Accept-Language")) != language.Chinese {
		return func(text string) string { return text }
	}
	return chinese().Message
}

// faultsIn are faults in the language of a caller.
func faultsIn(words func(string) string, list []gozzard.Fault) []gozzard.Fault {
	out := make([]gozzard.Fault, 0, len(list))
	for _, f := range list {
		f.Text = words(f.Text)
		out = append(out, f)
	}
	return out
}
