package expression

// maxLiterals is the largest number of literals that are listed.
const maxLiterals = MaxAlternatives

// literals lists all texts that match, nil if there are wildcards or too many texts.
func literals(parts []part) []string {
	list := []string{""}
	for _, part := range parts {
		var next []string
		for _, tokens := range part.choices {
			ends := []string{""}
			for _, t := range tokens {
				texts, ok := t.texts(maxLiterals)
				if !ok || len(ends)*len(texts) > maxLiterals {
					return nil
				}
				ends = combine(ends, texts)
			}
			if len(next)+len(list)*len(ends) > maxLiterals {
				return nil
			}
			next = append(next, combine(list, ends)...)
		}
		list = next
	}

	return unique(list)
}

// texts lists the texts that a token matches, if they are at most limit.
func (t token) texts(limit int) ([]string, bool) {
	switch t.kind {
	case tokenText:
		return []string{t.text}, true
	case tokenNumber:
		return t.numbers.texts(limit)
	}
	return nil, false
}

// combine appends each end to each head.
func combine(heads, ends []string) []string {
	list := make([]string, 0, len(heads)*len(ends))
	for _, head := range heads {
		for _, end := range ends {
			list = append(list, head+end)
		}
	}
	return list
}
