package api

import (
	"net/http"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
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

// said turns what agents and the server write into verdicts, events and statuses into the language that a request asks
// for. A text that is not known stays as it is.
func said(r *http.Request) func(string) string {
	return saidIn(languageOf(r))
}

// languageOf is the tag of the language in which a caller wants texts.
func languageOf(r *http.Request) string {
	return max(language.Accept(r.Header.Get("Accept-Language")), language.English).String()
}

// saidIn is said for a language by its tag; nil for another language.
func saidIn(tag string) func(string) string {
	switch language.Parse(tag) {
	case language.Chinese:
		return saidInChinese
	case language.English:
		return func(text string) string { return text }
	}
	return nil
}

// Bounds of the texts that are kept once they were looked up: a lookup compares a text with hundreds of patterns, and
// many processes and viewers say the same.
const (
	maxKeptTexts = 4096
	maxKeptText  = 1024 // bytes
)

var kept struct {
	sync.Mutex
	catalogue *language.Catalogue
	texts     map[string]string
}

// saidInChinese is the Chinese text of a verdict, an event or a status.
func saidInChinese(text string) string {
	if text == "" {
		return ""
	}

	kept.Lock()
	defer kept.Unlock()
	if kept.catalogue == nil {
		kept.catalogue = language.Verdicts()
	}
	if len(text) > maxKeptText {
		return kept.catalogue.Message(text)
	}
	if chinese, ok := kept.texts[text]; ok {
		return chinese
	}

	if kept.texts == nil || len(kept.texts) >= maxKeptTexts {
		kept.texts = map[string]string{}
	}
	chinese := kept.catalogue.Message(text)
	kept.texts[text] = chinese
	return chinese
}

// sayProcess puts the texts of a process into the language of a caller.
func sayProcess(said func(string) string, p *client.Process) {
	p.Message, p.HealthMessage = said(p.Message), said(p.HealthMessage)
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
