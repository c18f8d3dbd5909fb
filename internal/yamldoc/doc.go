// Package yamldoc reads a YAML or JSON file that a person wrote into a tree of values with their line numbers.
//
// It reads the part of YAML that people use for such files: block and flow mappings and lists, plain and quoted texts
// of one line, literal blocks and comments. JSON is part of that. It rejects everything else, with an error that
// names it: anchors, aliases, tags, merge keys, several documents, keys that are not texts, texts that continue in
// the next line.
//
// Time and memory are linear in the size of the file. General YAML libraries do not promise that: a tree of 20 MB of
// YAML takes more than a gigabyte, and deep nesting crashes the program.
package yamldoc
