// Package mako renders templates in the part of the Mako language that GSEKit accepts: for the attributes of processes and
// for configuration files.
//
// A template goes through four steps. The lexer splits the text as Mako does. The parser reads the Python in it. Check
// gives the verdicts of GSEKit's checker. The translator writes a Starlark program, and that program runs with limits
// of steps, memory, output and time.
//
// # How to use it
//
//   - Check says whether GSEKit's checker accepts a text, without what it includes: for a version that is stored.
//   - Load makes the template of a configuration file from its text. It replaces lines with Ginclude by the texts that a
//     Find gives. Load it once, and render it for each instance: a Template may be rendered many times at once.
//   - Compile makes any other template: the attributes of a process, and the path and the name of a file. It includes
//     nothing and does not ask the checker.
//   - Template.Render makes the text for a Context. For an instance of a process, topology.Tree.Context makes that.
//
// Errors of Load, Compile and Render are a *CheckError (GSEKit's code 4101007: its message is the message), a *RenderError
// (4101004, with Line, Source and Message), or what the Find returned (4101001 and 4101009 in GSEKit).
//
// # What it protects from
//
// The checker is there because clients expect its verdicts. It protects nothing: safety comes from Starlark, which has no
// way to files, the environment, the network or other businesses. A template sees the values of its Context, the functions
// in this package, and nothing else.
package mako
