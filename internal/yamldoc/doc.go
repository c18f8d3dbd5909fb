// Package yamldoc is a file that a person wrote, in YAML or JSON, as a tree whose values know their lines.
//
// It reads the part of YAML that people use for such files: block and flow mappings and lists, plain and quoted
// texts of one line, literal blocks and comments. JSON is part of that. What is left out is refused by name, never
// read otherwise: anchors, aliases, tags, merge keys, several documents, keys that are not texts, texts that go on
// in the next line. Time and memory are linear in the size of the file, which a general library's are not: its tree
// of 20 MB of YAML takes more than a gigabyte, and deep nesting ends the program.
package yamldoc
