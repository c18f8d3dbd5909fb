package specjson

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// schema is a JSON Schema, or a part of one.
type schema = map[string]any

// form is what the value of a key looks like: in words for people, and as a JSON Schema for editors.
type form struct {
	words  string
	schema schema
}

func textForm(words string, most int) form {
	return form{words, schema{"type": "string", "maxLength": most}}
}

func wordForm(words ...string) form {
	all := make([]any, len(words))
	for i, w := range words {
		all[i] = w
	}
	return form{"`" + strings.Join(words, "`, `") + "`", schema{"enum": all}}
}

func numberForm(least, most int64) form {
	s := schema{"type": "integer", "minimum": least}
	words := "number"
	if most < math.MaxInt64 {
		s["maximum"] = most
		words += " from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10)
	}
	return form{words, s}
}

var (
	pathForm    = textForm("absolute path", maxPath)
	lineForm    = textForm("text", maxShort)
	flagForm    = form{"`true` or `false`", schema{"type": "boolean"}}
	commandForm = form{"shell line, or list of the program and its arguments", schema{"oneOf": []any{
		schema{"type": "string", "maxLength": maxCommand},
		schema{"type": "array", "items": schema{"type": []any{"string", "number"}}, "minItems": 1,
			"maxItems": maxWords}}}}
	durationForm = form{"duration: `10s`, `5m`, or seconds", schema{"oneOf": []any{
		schema{"type": "integer", "minimum": 0, "maximum": maxSeconds},
		schema{"type": "string", "pattern": durationPattern}}}}
	sizeForm = form{"size: `512M`, `1G`, or bytes", schema{"oneOf": []any{
		schema{"type": "integer", "minimum": 0}, schema{"type": "string", "pattern": sizePattern}}}}
	memoryForm = form{"size, or percent of the machine: `512M`, `50%`", schema{"oneOf": []any{
		schema{"type": "integer", "minimum": 0},
		schema{"type": "string", "pattern": sizePattern + "|" + percentPattern}}}}
	cpuForm = form{"cores, or percent of the machine: `1.5`, `50%`", schema{"oneOf": []any{
		schema{"type": "number", "minimum": 0},
		schema{"type": "string", "pattern": `^[0-9]+([.][0-9]+)?$|` + percentPattern}}}}
	namesForm = form{"list of names", schema{"type": "array", "items": schema{"type": "string"}, "maxItems": maxAfter}}
	envForm   = form{"map of names to texts", schema{"type": "object", "maxProperties": maxVariables,
		"propertyNames": schema{"pattern": namePattern}, "additionalProperties": schema{"type": []any{"string", "number",
			"boolean"}}}}
	umaskForm  = form{"octal digits in quotes", schema{"type": "string", "pattern": umaskPattern}}
	rlimitForm = form{"number, `unlimited`, or a list of the soft and the hard limit", schema{"oneOf": []any{
		rlimitSchema, schema{"type": "array", "items": rlimitSchema, "minItems": 2, "maxItems": 2}}}}
	rlimitSchema = schema{"oneOf": []any{schema{"type": "integer", "minimum": 0}, schema{"const": unlimited}}}
)

// The patterns of texts. The program reads by them, and the schema has them.
const (
	durationPattern = `^([0-9]+|([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
	sizePattern     = `^[0-9]+([.][0-9]+)?([KMGT](i?B)?|B)?$`
	percentPattern  = `^[0-9]+([.][0-9]+)?%$`
	namePattern     = `^[A-Za-z_][A-Za-z0-9_]*$`
	umaskPattern    = `^0?[0-7]{3}$`
	unlimited       = "unlimited"
)

var (
	isDuration = regexp.MustCompile(durationPattern)
	isSize     = regexp.MustCompile(sizePattern)
	isPercent  = regexp.MustCompile(percentPattern)
	isName     = regexp.MustCompile(namePattern)
	isUmask    = regexp.MustCompile(umaskPattern)
)

// word reads a word out of a list.
func word[T ~string](v strictjson.Value, known ...T) T {
	if v.IsString() && v.Text() == "" {
		v.Fault("required, is empty")
		return ""
	}
	return oneOf(v, known...)
}

// readSeconds reads a duration in whole seconds. A number is seconds.
func readSeconds(v strictjson.Value, most int64) int {
	if v.IsNumber() {
		return int(v.Int(0, most))
	}
	text := v.Str()
	if text == "" {
		return 0
	}

	secs, err := strconv.ParseInt(text, 10, 64)
	if err != nil && isDuration.MatchString(text) {
		var d time.Duration
		d, err = time.ParseDuration(text)
		secs = int64(d / time.Second)
	}
	switch {
	case err != nil:
		v.Fault("must be a duration in whole seconds such as 10s, 5m or 1h30m, is %s", strictjson.Quote(text))
	case secs < 0 || secs > most:
		v.Fault("must be 0 to %d seconds, is %s", most, strictjson.Clip(text))
	default:
		return int(secs)
	}
	return 0
}

// readSize reads a number of bytes. K, M, G and T stand for powers of 1024.
func readSize(v strictjson.Value) int64 {
	if v.IsNumber() {
		return v.Int(0, math.MaxInt64)
	}
	text := v.Str()
	if text == "" {
		return 0
	}
	n, ok := parseSize(text)
	if !ok {
		v.Fault("must be a size such as 512M or 1G, is %s; K, M, G and T stand for 1024, 1024 times 1024, and so on",
			strictjson.Quote(text))
	}
	return n
}

func parseSize(text string) (int64, bool) {
	if !isSize.MatchString(text) {
		return 0, false
	}
	number := strings.TrimRight(text, "KMGTiB")
	unit := 1.0
	if len(text) > len(number) {
		unit = map[byte]float64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40, 'B': 1}[text[len(number)]]
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || x*unit >= math.MaxInt64 {
		return 0, false
	}
	return int64(x * unit), true
}

// readPercent reads a text such as "50%". ok is false if the value is none.
func readPercent(v strictjson.Value) (percent float64, ok bool) {
	text := v.Text()
	if !v.IsString() || !isPercent.MatchString(text) {
		return 0, false
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || percent > 100 {
		v.Fault("must be at most 100%%, is %s", strictjson.Clip(text))
		return 0, true
	}
	return percent, true
}

// readCores reads a number of processor cores, as a number or as a text.
func readCores(v strictjson.Value) float64 {
	if v.IsNumber() {
		return v.Float(0, maxCores)
	}
	text := v.Str()
	if text == "" {
		return 0
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= maxCores) {
		v.Fault("must be a number of cores such as 1.5, or a percentage such as 50%%, is %s", strictjson.Quote(text))
		return 0
	}
	return x
}

// readCommandLine reads a command: a shell line as it is, or a program with its arguments, which are quoted for the shell.
func readCommandLine(v strictjson.Value) string {
	if !v.IsList() {
		return ReadCommand(v)
	}

	var words []string
	v.List(maxWords, func(e *strictjson.Value) {
		word := e.Scalar()
		if strings.ContainsRune(word, 0) {
			e.Fault("has a NUL character")
		}
		words = append(words, quoteWord(word))
	})
	switch {
	case len(words) == 0:
		v.Fault("required, is empty: the first element is the program")
		return ""
	case words[0] == "''":
		v.Fault("the first element is the program, and it is empty")
	}
	line := "exec " + strings.Join(words, " ")
	if len(line) > maxCommand {
		v.Fault("has %d bytes, at most %d are allowed", len(line), maxCommand)
	}
	return line
}

// quoteWord writes a word so that a shell reads exactly this word.
func quoteWord(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !gozzard.PlainRune(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
