// Package topology is BlueKing's view of a fleet: businesses with sets, modules, service instances on hosts, and the
// processes of each.
//
// A Business comes from a document, from the record or from BlueKing CMDB. Parse and Format read and write documents,
// Check finds faults, Number gives every process its instance numbers, Define makes the definition of an instance, and
// Compare finds the difference between two states. Package topology/index answers queries about all businesses.
package topology
