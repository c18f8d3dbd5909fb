// Package gsekit is BlueKing's GSEKit API: processes by business, set and module, and jobs on them.
package gsekit
