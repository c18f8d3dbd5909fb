package specjson

import (
	"encoding/json"
	"fmt"
	"strings"
)

// SchemaPath is where the server has the JSON Schema of documents.
const SchemaPath = "/api/v1/definition.schema.json"

// Schema is the JSON Schema of a document that `gozzard register` reads, made of Keys.
func Schema() []byte {
	root := schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Gozzard definition of a process",
		"type": "object", "required": []any{"name"}, "additionalProperties": false, "properties": properties(""),
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil { // the table has only texts, numbers, lists and maps
		panic(fmt.Sprintf("encode schema: %v", err))
	}
	return append(b, '\n')
}

// properties are the keys of one part of a document.
func properties(prefix string) schema {
	all := schema{}
	for _, k := range Keys() {
		name, inside := strings.CutPrefix(k.Name, prefix)
		if !inside || strings.Contains(name, ".") {
			continue
		}
		s := schema{"description": k.Meaning}
		parts := properties(k.Name + ".")
		object := schema{"type": "object", "additionalProperties": false, "properties": parts}
		switch {
		case len(parts) == 0:
			for key, value := range k.schema {
				s[key] = value
			}
		case k.schema == nil:
			for key, value := range object {
				s[key] = value
			}
		default:
			s["oneOf"] = []any{k.schema, object}
		}
		all[name] = s
	}
	return all
}
