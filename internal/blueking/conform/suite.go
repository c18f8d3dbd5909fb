package conform

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

//go:embed requests/*.json
var requests embed.FS

// Names are the APIs in the order in which they are asked.
var Names = []string{"gse", "gateway", "job", "gsekit"}

// suite is the requests of one API.
type suite struct {
	API      string         `json:"api"`
	Prefixes []prefix       `json:"prefixes"`
	Shapes   map[string]any `json:"shapes"`
	Requests []request      `json:"requests"`

	// Operate is sent in this order to the first prefix of each family, if the caller wants a process to be operated.
	Operate []request `json:"operate"`
}

// prefix is a folder of paths. Calls of one family are the same in all its folders.
type prefix struct {
	Path   string `json:"path"`
	Family string `json:"family"`

	// Gateway: an error may have another HTTP status than 200, and the key result may be missing.
	Gateway bool `json:"gateway"`
}

// request is one request with what is documented of its answer.
type request struct {
	Name     string   `json:"name"`
	Case     string   `json:"case"` // what it is about, if a call has several
	Families []string `json:"families"`
	Method   string   `json:"method"` // POST if it is empty
	Path     string   `json:"path"`   // after the prefix; the name if it is empty
	Body     any      `json:"body"`
	Plain    bool     `json:"plain"`    // without the final slash and without Content-Type, as old clients send it
	Stranger bool     `json:"stranger"` // with the credentials of an app that does not exist

	// One of these says what is expected: the form of data of a success, the codes of an error, or the form of the
	// whole answer with its HTTP status. No codes means any code.
	Data     any   `json:"data"`
	Rejected bool  `json:"rejected"`
	Codes    []int `json:"codes"`
	Status   int   `json:"status"`
	Answer   any   `json:"answer"`

	Poll bool              `json:"poll"` // ask again as long as something of the answer is in work
	Save map[string]string `json:"save"` // values of the answer that later requests need, by their path
}

// load reads the requests of an API.
func load(api string) (*suite, error) {
	b, err := requests.ReadFile("requests/" + api + ".json")
	if err != nil {
		return nil, fmt.Errorf("no requests of the API %q: %w", api, err)
	}
	var s suite
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("requests of the API %q: %w", api, err)
	}
	return &s, nil
}

// in reports whether a request is sent to a prefix.
func (r *request) in(p prefix) bool {
	return len(r.Families) == 0 || slices.Contains(r.Families, p.Family)
}

// method is the method of the request.
func (r *request) method() string {
	if r.Method == "" {
		return http.MethodPost
	}
	return r.Method
}

// path is the path of the request below a prefix.
func (r *request) path(p prefix, vars Vars) string {
	path := r.Path
	if path == "" {
		path = r.Name
	}
	path, query, found := strings.Cut(path, "?")
	path = p.Path + "/" + path
	if !r.Plain {
		path += "/"
	}
	if found {
		path += "?" + query
	}
	return vars.text(path)
}

// label names the request in a table.
func (r *request) label() string {
	if r.Case == "" {
		return r.Name
	}
	return r.Name + ": " + r.Case
}

// shape is the form of the whole answer.
func (r *request) shape(p prefix) any {
	result := "result"
	if p.Gateway {
		result += "?"
	}
	switch {
	case r.Answer != nil:
		return r.Answer
	case r.Rejected:
		return map[string]any{result: "bool=false", "code": codeShape(r.Codes), "message": "string", "data": "null"}
	}
	return map[string]any{result: "bool=true", "code": "int=0", "message?": "string", "data": r.Data}
}

// codeShape is the form of the code of an error.
func codeShape(codes []int) string {
	if len(codes) == 0 {
		return "int!=0"
	}
	var all []string
	for _, c := range codes {
		all = append(all, fmt.Sprintf("int=%d", c))
	}
	return strings.Join(all, "|")
}
