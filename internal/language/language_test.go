package language_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/language"
)

func TestParse(t *testing.T) {
	for tag, want := range map[string]language.Language{
		"zh": language.Chinese, "zh-cn": language.Chinese, "ZH_CN.UTF-8": language.Chinese, "zh-hans": language.Chinese,
		" zh-Hant-TW ": language.Chinese, "zh@pinyin": language.Chinese,
		"en": language.English, "en-US": language.English, "EN_gb.utf8": language.English,
		"": language.Unsaid, "english": language.Unsaid, "zhuang": language.Unsaid, "fr": language.Unsaid,
		"*": language.Unsaid, "C": language.Unsaid, "-zh": language.Unsaid, "\x00zh": language.Unsaid,
	} {
		if got := language.Parse(tag); got != want {
			t.Errorf("%q is %v, want %v", tag, got, want)
		}
	}
}

func TestAccept(t *testing.T) {
	for header, want := range map[string]language.Language{
		"zh-CN,zh;q=0.9,en;q=0.8":                language.Chinese,
		"en-US,en;q=0.9,zh;q=0.8":                language.English,
		"en;q=0.3, zh;q=0.7":                     language.Chinese,
		"fr, de;q=0.9, zh ; q=0.1":               language.Chinese,
		"zh;q=0, en;q=0.1":                       language.English,
		"zh;q=0":                                 language.Unsaid,
		"zh;q=NaN, en;q=0.1":                     language.English,
		"zh;q=1e9, en;q=0.1":                     language.English,
		"zh;q=-1":                                language.Unsaid,
		"zh;level=1":                             language.Chinese,
		"":                                       language.Unsaid,
		"*":                                      language.Unsaid,
		",,,;;;q=,=":                             language.Unsaid,
		strings.Repeat("fr,", 9999):              language.Unsaid,
		strings.Repeat("fr;q=0.5,", 9999) + "zh": language.Unsaid, // beyond what is read
		strings.Repeat("z", 1<<20):               language.Unsaid,
		"zh," + strings.Repeat("en;q=0.999,", 1e5): language.Chinese,
	} {
		began := time.Now()
		if got := language.Accept(header); got != want {
			t.Errorf("%.60q is %v, want %v", header, got, want)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%.60q takes %s", header, took)
		}
	}
}

func TestOfEnvironment(t *testing.T) {
	for _, tt := range []struct {
		all, messages, lang, list string
		want                      language.Language
	}{
		{want: language.English},
		{lang: "zh_CN.UTF-8", want: language.Chinese},
		{lang: "zh_TW", want: language.Chinese},
		{lang: "de_DE.UTF-8", want: language.English},
		{all: "C", lang: "zh_CN.UTF-8", want: language.English},
		{all: "zh_CN", lang: "en_US.UTF-8", want: language.Chinese},
		{messages: "en_US.UTF-8", lang: "zh_CN.UTF-8", want: language.English},
		{all: "zh_CN.UTF-8", messages: "C", want: language.Chinese},
		{lang: "en_US.UTF-8", list: "zh_CN:en", want: language.Chinese},
		{lang: "zh_CN.UTF-8", list: "fr:en_GB:zh", want: language.English},
		{lang: "C.UTF-8", list: "zh_CN", want: language.English},
		{lang: "POSIX", list: "zh_CN", want: language.English},
	} {
		env := map[string]string{"LC_ALL": tt.all, "LC_MESSAGES": tt.messages, "LANG": tt.lang, "LANGUAGE": tt.list}
		if got := language.OfEnvironment(func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("%v: %v, want %v", env, got, tt.want)
		}
	}
}
