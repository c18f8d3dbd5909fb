// Package topology is the fleet as people think of it: businesses with sets, modules, service instances on hosts,
// and the processes that each runs.
//
// A Business is what a document, the record or BlueKing CMDB says. Number gives every process its instances, Define
// makes the definition under which an instance is operated, Compare tells two states apart, and Index answers
// questions about all businesses from memory.
package topology
