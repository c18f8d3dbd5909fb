package host

// The seams of the tests, on every system.

// CleanOutput is what is kept of output.
func CleanOutput(b []byte, cut bool) string { return cleanOutput(b, cut) }

// CleanCmdline is what is shown of a command line.
func CleanCmdline(args []string) string { return cleanCmdline(args) }

// MatchName reports whether a process with these names goes by another.
func MatchName(want, comm, exe string, args []string) bool {
	return names{comm: comm, exe: exe, args: args}.match(want)
}

// SupportedOn is Supported for any system.
func SupportedOn(system string) error { return supportedOn(system) }
