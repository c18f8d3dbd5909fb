package host

// Unexported functions that the tests of every system call.

// CleanOutput returns the part of output that is stored.
func CleanOutput(b []byte, cut bool) string { return cleanOutput(b, cut) }

// CleanCmdline returns a command line as it is shown.
func CleanCmdline(args []string) string { return cleanCmdline(args) }

// MatchName reports whether a process with these names matches a name.
func MatchName(want, comm, exe string, args []string) bool {
	return names{comm: comm, exe: exe, args: args}.match(want)
}

// ShownName is the name of a process for messages.
func ShownName(comm string, args []string) string { return names{comm: comm, args: args}.shown() }

// SupportedOn is Supported for any system.
func SupportedOn(system string) error { return supportedOn(system) }
