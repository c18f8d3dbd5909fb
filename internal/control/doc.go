// Package control is the control plane of the server: it accepts operations, records them, folds in what agents
// report, and answers. Package delivery sends the operations. See DESIGN.md.
package control
