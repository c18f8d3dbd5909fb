package specjson_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/specjson"
)

// refuses says why a JSON Schema refuses a value, or "". It knows the words that the schema of definitions has, and fails
// for others.
func refuses(schema map[string]any, v any, at string) string {
	for word, want := range schema {
		if why := refusesWord(schema, word, want, v, at); why != "" {
			return why
		}
	}
	return ""
}

func refusesWord(schema map[string]any, word string, want, v any, at string) string {
	text, isText := v.(string)
	number, isNumber := v.(float64)
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	bad := false
	switch word {
	case "$schema", "title", "description":
	case "type":
		bad = !hasType(want, v)
	case "enum":
		bad = true
		for _, w := range want.([]any) {
			bad = bad && !reflect.DeepEqual(w, v)
		}
	case "const":
		bad = !reflect.DeepEqual(want, v)
	case "pattern":
		bad = isText && !regexp.MustCompile(want.(string)).MatchString(text)
	case "maxLength":
		bad = isText && len([]rune(text)) > int(want.(float64))
	case "minimum":
		bad = isNumber && number < want.(float64)
	case "maximum":
		bad = isNumber && number > want.(float64)
	case "minItems":
		bad = isList && len(list) < int(want.(float64))
	case "maxItems":
		bad = isList && len(list) > int(want.(float64))
	case "maxProperties":
		bad = isObject && len(object) > int(want.(float64))
	case "required":
		for _, name := range want.([]any) {
			if _, has := object[name.(string)]; isObject && !has {
				return at + ": no " + name.(string)
			}
		}
	case "items":
		for i, e := range list {
			if why := refuses(want.(map[string]any), e, fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
	case "propertyNames":
		for name := range object {
			if why := refuses(want.(map[string]any), name, at+" name"); why != "" {
				return why
			}
		}
	case "properties":
		for name, part := range want.(map[string]any) {
			if value, has := object[name]; has {
				if why := refuses(part.(map[string]any), value, at+"."+name); why != "" {
					return why
				}
			}
		}
	case "additionalProperties":
		known, _ := schema["properties"].(map[string]any)
		for name, value := range object {
			if _, is := known[name]; is {
				continue
			}
			if part, isSchema := want.(map[string]any); isSchema {
				if why := refuses(part, value, at+"."+name); why != "" {
					return why
				}
			} else if want == false {
				return at + ": unknown " + name
			}
		}
	case "oneOf":
		fits := 0
		for _, part := range want.([]any) {
			if refuses(part.(map[string]any), v, at) == "" {
				fits++
			}
		}
		bad = fits != 1
	default:
		return "the test does not know the word " + word
	}
	if bad {
		return fmt.Sprintf("%s: %v is against %s %v", at, v, word, want)
	}
	return ""
}

func hasType(want, v any) bool {
	if all, several := want.([]any); several {
		for _, one := range all {
			if hasType(one, v) {
				return true
			}
		}
		return false
	}
	switch v := v.(type) {
	case string:
		return want == "string"
	case bool:
		return want == "boolean"
	case float64:
		return want == "number" || want == "integer" && v == math.Trunc(v)
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

func parsedSchema(t *testing.T) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(specjson.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// named reads a JSON document and gives it a name. ok is false if it has a null somewhere: the program reads that as missing.
func namedDocument(text []byte) (doc map[string]any, ok bool) {
	if json.Unmarshal(text, &doc) != nil || doc == nil || strings.Contains(string(text), "null") {
		return nil, false
	}
	doc["name"] = "x"
	return doc, true
}

// TestSchemaRefuses checks that an editor finds what the program finds.
func TestSchemaRefuses(t *testing.T) {
	schema := parsedSchema(t)
	for _, text := range []string{`{"comand":"x"}`, `{"health":{"htp":"x"}}`, `{"memory":"lots"}`, `{"cpu":"many"}`,
		`{"umask":22}`, `{"umask":"0999"}`, `{"restart":"sometimes"}`, `{"restart":{"polcy":"never"}}`, `{"env":{"1A":"x"}}`,
		`{"env":{"A":[]}}`, `{"rlimits":{"nofil":1}}`, `{"rlimits":{"nofile":"many"}}`, `{"rlimits":{"nofile":[1]}}`,
		`{"nice":20}`, `{"instances":0}`, `{"stop_signal":"SIGTERM"}`, `{"stop_timeout":"500ms"}`, `{"command":[]}`,
		`{"health":{"tcp":70000}}`, `{"logs":{"keep":0}}`, `{"limits":{"act":"pray"}}`} {
		doc, ok := namedDocument([]byte(text))
		if !ok || refuses(schema, doc, "") == "" {
			t.Errorf("the schema accepts %s", text)
		}
		if _, faults, ok := tryDocument([]byte(strings.Replace(text, "{", `{"command":"./web",`, 1))); ok && faults == 0 &&
			!strings.Contains(text, "comand") {
			t.Errorf("the program accepts %s", text)
		}
	}
}

// TestSchemaAcceptsExamples checks the example of every key.
func TestSchemaAcceptsExamples(t *testing.T) {
	d, _ := readDocument(t, fullDocument)
	b, err := json.Marshal(specjson.Map(specjson.Write(d.Spec)))
	if err != nil {
		t.Fatal(err)
	}
	doc, _ := namedDocument(b)
	if why := refuses(parsedSchema(t), doc, ""); why != "" {
		t.Error(why)
	}
}
