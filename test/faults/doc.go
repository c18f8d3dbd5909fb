// Package faults is the matrix of faults that the program must survive: its tests kill, freeze, cut off and starve real
// servers and agents under load and count what was lost, done twice or reported wrongly. `make test` runs it small,
// `make faults` at full scale.
package faults
