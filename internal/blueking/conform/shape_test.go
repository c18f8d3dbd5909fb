package conform

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestShapes: every form accepts what it describes and names what differs.
func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		shape, value string
		found        string // where: got, want; "" if it agrees
	}{
		{`"int"`, `5`, ""},
		{`"int"`, `5.5`, ": number 5.5, want int"},
		{`"int"`, `"5"`, `: string "5", want int`},
		{`"number"`, `5`, ""},
		{`"int=0|int=117"`, `117`, ""},
		{`"int=0|int=117"`, `115`, ": int 115, want int=0|int=117"},
		{`"int!=0"`, `0`, ": int 0, want int!=0"},
		{`"int=-1"`, `-1`, ""},
		{`"int>1"`, `1`, ": int 1, want int>1"},
		{`"int>1"`, `2`, ""},
		{`"bool=true"`, `false`, ": bool false, want bool=true"},
		{`"string^GSETASK:"`, `"GSETASK:1"`, ""},
		{`"string^GSETASK:"`, `"TASK:1"`, `: string "TASK:1", want string^GSETASK:`},
		{`"string|null"`, `null`, ""},
		{`"object"`, `[]`, ": array, want object"},
		{`["int"]`, `[1, "x"]`, `[1]: string "x", want int`},
		{`["int"]`, `[]`, ""},
		{`["int"]`, `{}`, ": object, want array"},
		{`{"$some": "int"}`, `[]`, ": an empty array, want an element"},
		{`{"a": {"b": "int"}}`, `{"a": {"b": 1, "more": 2}}`, ""},
		{`{"a": {"b": "int"}}`, `{"a": {}}`, "a.b: missing, want int"},
		{`{"a": {"b": "int"}}`, `{"a": null}`, "a: null, want object"},
		{`{"a?": "int"}`, `{}`, ""},
		{`{"a?": "int"}`, `{"a": null}`, "a: null, want int"},
		{`{"*": "int"}`, `{"x": 1, "y": "2"}`, `y: string "2", want int`},
		{`{"content": {"$json": {"pid": "int>1"}}}`, `{"content": "{\"pid\": 7}"}`, ""},
		{`{"content": {"$json": {"pid": "int>1"}}}`, `{"content": "{\"pid\": -1}"}`, "content.pid: int -1, want int>1"},
		{`{"content": {"$json": {"pid": "int>1"}}}`, `{"content": {"pid": 7}}`, "content: object, want string with JSON"},
		{`{"content": {"$json": {"pid": "int>1"}}}`, `{"content": ""}`, `content: string "", want string with JSON`},
		{`"@named"`, `{"x": "1"}`, `x: string "1", want int`},
		{`"@nobody"`, `1`, ": int 1, want @nobody"},
	} {
		c := &checker{shapes: map[string]any{"named": map[string]any{"x": "int"}}}
		c.check("", decoded(t, tt.shape), decoded(t, tt.value))
		var found []string
		for _, d := range c.found {
			found = append(found, fmt.Sprintf("%s: %s, want %s", d.Where, d.Got, d.Want))
		}
		if got := strings.Join(found, "; "); got != tt.found {
			t.Errorf("%s of %s: %q, want %q", tt.shape, tt.value, got, tt.found)
		}
	}
}

// TestVars: values are put in with their types, into keys, too.
func TestVars(t *testing.T) {
	vars := Vars{"cloud": 3, "ip": "10.0.0.1"}
	got, err := json.Marshal(vars.fill(decoded(t, `{"{{cloud}}:{{ip}}": ["{{cloud}}", "x{{cloud}}", "{{nobody}}", null, 1]}`)))
	if err != nil || string(got) != `{"3:10.0.0.1":[3,"x3","{{nobody}}",null,1]}` {
		t.Errorf("%s, %v", got, err)
	}
	vars.save("job", "data.job_id", decoded(t, `{"data": {"job_id": 12}}`))
	vars.save("none", "data.job_id.x", decoded(t, `{"data": {"job_id": 12}}`))
	if vars.text("job/{{job}}") != "job/12" || vars["none"] != nil {
		t.Errorf("%v", vars)
	}
}
