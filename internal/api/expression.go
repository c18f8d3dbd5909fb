package api

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxExpression is the longest expression, in bytes.
const maxExpression = 5 << 10

// expressionFields are the names of the fields of an expression, in their order.
var expressionFields = [...]string{"set", "module", "service instance", "process name", "process id"}

// parseExpression reads set.module.service_instance.process_name.process_id, each field a pattern. A dot that
// belongs to a name is written \. or stands within brackets. It returns the faults of all fields.
func parseExpression(text string) (*topology.Expression, []string) {
	if len(text) > maxExpression {
		return nil, []string{fmt.Sprintf("has %d bytes, at most %d are allowed", len(text), maxExpression)}
	}

	fields := splitFields(text)
	if len(fields) != len(expressionFields) {
		return nil, []string{fmt.Sprintf("must have five fields with dots between them "+
			"(set.module.service_instance.process_name.process_id), has %d: "+
			`* matches everything, and a dot that belongs to a name is written \.`, len(fields))}
	}

	var parts [len(expressionFields)]*expression.Expression
	var faults []string
	out := &topology.Expression{}
	for i, field := range fields {
		if s, ok := expression.ParseSlice(field); ok && i == len(expressionFields)-1 {
			out.Slice = &s
			continue
		}
		e, err := expression.Parse(field)
		var why *expression.Error
		switch {
		case errors.As(err, &why):
			faults = append(faults, fmt.Sprintf("field %d (%s) %q: %s at character %d", i+1, expressionFields[i],
				clip(field), why.Reason, why.Pos+1))
		case err != nil:
			faults = append(faults, fmt.Sprintf("field %d (%s): %s", i+1, expressionFields[i], err))
		case !e.All():
			parts[i] = e
		}
	}

	out.Set, out.Module, out.Service, out.Name, out.Process = parts[0], parts[1], parts[2], parts[3], parts[4]
	return out, faults
}

// splitFields splits at the dots that are neither escaped nor within brackets. Dots after a bracket that is not closed
// split too; the parser of the field then reports the bracket.
func splitFields(text string) []string {
	var fields []string
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '.':
			b.WriteByte('.')
			i++
		case c == '[':
			end := strings.IndexByte(text[i:], ']')
			if end < 0 {
				end = 0
			}
			b.WriteString(strings.ReplaceAll(text[i:i+end+1], `\.`, "."))
			i += end
		case c == '.':
			fields = append(fields, b.String())
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}

	return append(fields, b.String())
}
