// Package gse is BlueKing's GSE process API: its paths, words and numbers, in front of the control plane.
package gse
