// Package mako renders templates in the part of the Mako language that GSEKit accepts: for the attributes of processes and
// for configuration files.
//
// A template goes through four steps. The lexer splits the text as Mako does. The parser reads the Python in it. Check
// gives the verdicts of GSEKit's checker. The translator writes a Starlark program, and that program runs with limits
// of steps, memory, output and time.
//
// The checker is there because clients expect its verdicts. It protects nothing: safety comes from Starlark, which has no
// way to files, the environment, the network or other businesses. A template sees the values of its Context, the functions
// in this package, and nothing else.
package mako
