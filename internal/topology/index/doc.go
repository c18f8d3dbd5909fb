// Package index answers queries about the processes of businesses from memory.
//
// It keeps each business as columns (columns.go), which build.go makes from a topology document. A query has
// conditions (filter.go); plan.go finds the rows that match them, order.go sorts them and find.go returns a page of
// them. refresh.go keeps the statuses of the processes up to date.
package index
