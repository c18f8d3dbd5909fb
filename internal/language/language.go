package language

import (
	"strconv"
	"strings"
)

// Language is a language of messages.
type Language uint8

// The languages. Unsaid means that nobody asked for one: the part that answers uses its default.
const (
	Unsaid Language = iota
	English
	Chinese
)

// String is the tag of a language.
func (l Language) String() string {
	switch l {
	case English:
		return "en"
	case Chinese:
		return "zh"
	}
	return ""
}

// Parse reads one tag, such as zh-CN, zh_CN.UTF-8, zh-hans or en. Any other language is Unsaid.
func Parse(tag string) Language {
	tag = strings.TrimSpace(tag)
	if end := strings.IndexAny(tag, "-_.@"); end >= 0 {
		tag = tag[:end]
	}

	switch {
	case strings.EqualFold(tag, "zh"):
		return Chinese
	case strings.EqualFold(tag, "en"):
		return English
	}
	return Unsaid
}

// The parts of an Accept-Language that are read. Browsers send a few tags; a longer list has nothing to say.
const (
	maxAccept = 1024
	maxTags   = 32
)

// Accept reads an Accept-Language: the language with the highest weight, the first of several. Tags that cannot be
// read, and languages without texts, are left out.
func Accept(header string) Language {
	header = header[:min(len(header), maxAccept)]
	best, found, tags := 0.0, Unsaid, 0
	for entry := range strings.SplitSeq(header, ",") {
		if tags++; tags > maxTags {
			break
		}
		tag, parameters, _ := strings.Cut(entry, ";")
		l, q := Parse(tag), weight(parameters)
		if l != Unsaid && q > best {
			best, found = q, l
		}
	}
	return found
}

// weight reads q=0.8; 1 if there is none, 0 if it cannot be read.
func weight(parameters string) float64 {
	name, value, given := strings.Cut(strings.TrimSpace(parameters), "=")
	if !given || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 1
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}

// OfEnvironment is the language of a command line, from LC_ALL, LC_MESSAGES and LANG, as gettext reads them. LANGUAGE
// is a list of languages by preference, which counts unless the locale is C. Everything else is English.
func OfEnvironment(getenv func(string) string) Language {
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale = getenv(name); locale != "" {
			break
		}
	}

	plain, _, _ := strings.Cut(locale, ".")
	if plain == "" || plain == "C" || plain == "POSIX" {
		return English
	}

	for tag := range strings.SplitSeq(getenv("LANGUAGE"), ":") {
		if l := Parse(tag); l != Unsaid {
			return l
		}
	}
	if l := Parse(locale); l != Unsaid {
		return l
	}

	return English
}
