// Package expression matches names by GSEKit expressions: lists, ranges, wildcards and slices.
package expression
