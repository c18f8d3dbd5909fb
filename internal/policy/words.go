package policy

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxWords is how many words of one command are looked at. A longer text is no command that a person wrote.
const maxWords = 4096

// maxNested is how deep commands inside of quoted words are looked at, as in sh -c "./start.sh".
const maxNested = 3

// programs lists the files that the text of a command would execute or hand to an interpreter, as far as they stand
// in the text as plain words. A relative name is searched in the folder of the command, and in every folder that the
// text enters with cd.
func programs(dir, text string) (files []string) {
	return nestedPrograms(absolute("", dir), text, maxNested)
}

func nestedPrograms(dir, text string, depth int) (files []string) {
	dirs := []string{dir}
	for _, cmd := range simpleCommands(text) {
		// Skip the variables and the words that only start another command.
		first := 0
		for first < len(cmd) && (isAssignment(cmd[first]) || isPrefixWord(cmd[first])) {
			first++
		}
		if first == len(cmd) {
			continue
		}
		cmd = cmd[first:]

		// Follow cd.
		if cmd[0] == "cd" {
			if target := cdTarget(cmd[1:]); target != "" {
				dirs = append(dirs, absolute(dirs[len(dirs)-1], target))
			}
			continue
		}

		// The program itself counts also if it does not exist yet: another account could create it.
		if strings.ContainsRune(cmd[0], '/') {
			files = append(files, absolute(dirs[len(dirs)-1], cmd[0]))
		}

		// Other words count if they are programs or scripts.
		for i, word := range cmd {
			if depth > 0 && strings.ContainsAny(word, " \t\n;&|()`") {
				files = append(files, nestedPrograms(dirs[len(dirs)-1], word, depth-1)...)
			}
			interpreted := slices.ContainsFunc(cmd[:i], isInterpreter)
			for _, d := range dirs {
				if file := absolute(d, word); isProgram(file, interpreted) && !slices.Contains(files, file) {
					files = append(files, file)
				}
			}
		}
	}
	return files
}

// isProgram reports whether a path is a file that can be executed, or a script. A file that is handed to an
// interpreter is a script whatever is in it.
func isProgram(path string, interpreted bool) bool {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return false
	}
	if interpreted || fi.Mode().Perm()&0o111 != 0 {
		return true
	}

	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [2]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == "#!"
}

// isInterpreter reports whether a program executes the files that its arguments name.
func isInterpreter(word string) bool {
	switch strings.TrimRight(filepath.Base(word), "0123456789.-") {
	case ".", "", "source", "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "csh", "tcsh", "fish", "busybox", "python",
		"pypy", "perl", "ruby", "node", "nodejs", "php", "java", "lua", "luajit", "tclsh", "awk", "gawk", "mawk", "make":
		return true
	}
	return false
}

// isPrefixWord reports whether a word only starts the command after it.
func isPrefixWord(word string) bool {
	switch word {
	case "exec", "command", "builtin", "nohup", "setsid", "env", "time", "then", "else", "elif", "do", "if", "while",
		"until", "{", "}", "!":
		return true
	}
	return false
}

// isAssignment reports whether a word sets a variable.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// cdTarget is the folder that cd enters, "" if the text does not say it.
func cdTarget(args []string) string {
	for _, a := range args {
		if a == "--" || len(a) > 1 && a[0] == '-' {
			continue
		}
		return a
	}
	return ""
}

// simpleCommands splits the text of a shell into its commands, and these into words without their quotes. A word that
// a redirection names is no part of a command.
func simpleCommands(text string) [][]string {
	var s splitter
	for _, r := range text {
		s.add(r)
	}
	s.endCommand()
	return s.all
}

// splitter collects the words of a text.
type splitter struct {
	all [][]string
	cmd []string

	word       strings.Builder
	inWord     bool
	quote      rune // 0 outside of quotes
	escaped    bool // the next character has no meaning
	redirected bool // the next word is the file of a redirection
	count      int
}

func (s *splitter) add(r rune) {
	switch {
	case s.escaped:
		s.escaped = false
		if r != '\n' { // a line that goes on
			s.write(r)
		}
	case r == '\\' && s.quote != '\'':
		s.escaped = true
	case s.quote != 0 && r == s.quote:
		s.quote = 0
	case s.quote != 0:
		s.write(r)
	case r == '\'' || r == '"':
		s.quote, s.inWord = r, true
	case r == ' ' || r == '\t':
		s.endWord()
	case r == '<' || r == '>':
		if t := s.word.String(); t != "" && strings.Trim(t, "0123456789") == "" { // the number of a descriptor
			s.word.Reset()
			s.inWord = false
		}
		s.endWord()
		s.redirected = true
	case r == '&' && s.redirected && !s.inWord: // 2>&1
	case strings.ContainsRune(";&|()`\n", r):
		s.endCommand()
	default:
		s.write(r)
	}
}

func (s *splitter) write(r rune) {
	s.word.WriteRune(r)
	s.inWord = true
}

func (s *splitter) endWord() {
	if s.inWord && !s.redirected && s.count < maxWords {
		s.cmd = append(s.cmd, s.word.String())
		s.count++
	}
	if s.inWord {
		s.redirected = false
	}
	s.word.Reset()
	s.inWord = false
}

func (s *splitter) endCommand() {
	s.endWord()
	s.redirected = false
	if len(s.cmd) > 0 {
		s.all = append(s.all, s.cmd)
		s.cmd = nil
	}
}
