package openapi

import (
	"encoding/json"
	"strings"
)

// Version is the version of OpenAPI that a Document has.
const Version = "3.1.0"

// Document is an OpenAPI document.
type Document struct {
	OpenAPI    string          `json:"openapi"`
	Info       Info            `json:"info"`
	Paths      map[string]Path `json:"paths"`
	Components Components      `json:"components"`
}

// Info describes the API.
type Info struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version"`
}

// Path is the operations of one path, by method in lower case.
type Path map[string]*Operation

// Operation is one method on one path.
type Operation struct {
	ID          string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Description string                `json:"description,omitempty"`
	Tags        []string              `json:"tags,omitempty"`
	Parameters  []Parameter           `json:"parameters,omitempty"`
	Body        *Body                 `json:"requestBody,omitempty"`
	Responses   map[string]Response   `json:"responses"` // by status
	Security    []map[string][]string `json:"security"`  // one of these; an empty list: no credentials are needed
}

// Parameter is a value in the path, the query or a header of a request.
type Parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *Schema `json:"schema"`
}

// Body is the body of a request, by media type.
type Body struct {
	Required bool             `json:"required,omitempty"`
	Content  map[string]Media `json:"content"`
}

// Response is an answer, by media type, or a reference to one in Components.
type Response struct {
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Content     map[string]Media `json:"content,omitempty"`
}

// Media is a body of one media type.
type Media struct {
	Schema *Schema `json:"schema,omitempty"`
}

// Components are the parts that a document refers to.
type Components struct {
	Schemas         map[string]*Schema        `json:"schemas"`
	Responses       map[string]Response       `json:"responses,omitempty"`
	SecuritySchemes map[string]SecurityScheme `json:"securitySchemes,omitempty"`
}

// SecurityScheme is a kind of credentials.
type SecurityScheme struct {
	Type        string `json:"type"` // apiKey, http or mutualTLS
	Description string `json:"description,omitempty"`
	Name        string `json:"name,omitempty"`   // of apiKey: the header
	In          string `json:"in,omitempty"`     // of apiKey
	Scheme      string `json:"scheme,omitempty"` // of http
}

// Type is the type of a JSON value, or several of them with a | between, such as "string|null".
type Type string

// OrNull is the type that also accepts null.
func (t Type) OrNull() Type { return t + "|null" }

// MarshalJSON writes one type as a text, several as a list.
func (t Type) MarshalJSON() ([]byte, error) {
	if list := strings.Split(string(t), "|"); len(list) > 1 {
		return json.Marshal(list)
	}
	return json.Marshal(string(t))
}

// Schema is a JSON schema. The zero value accepts everything.
type Schema struct {
	Ref             string             `json:"$ref,omitempty"`
	Type            Type               `json:"type,omitempty"`
	Format          string             `json:"format,omitempty"`
	Pattern         string             `json:"pattern,omitempty"`
	Enum            []string           `json:"enum,omitempty"`
	AnyOf           []*Schema          `json:"anyOf,omitempty"`
	ContentEncoding string             `json:"contentEncoding,omitempty"`
	Description     string             `json:"description,omitempty"`
	Minimum         *int               `json:"minimum,omitempty"`
	Items           *Schema            `json:"items,omitempty"`
	Properties      map[string]*Schema `json:"properties,omitempty"`
	Required        []string           `json:"required,omitempty"`
	Additional      *Schema            `json:"additionalProperties,omitempty"`
}
