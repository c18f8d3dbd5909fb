package gozzard

// FabricCounts counts the messages of the fabric since the server started.
type FabricCounts struct {
	Sent      uint64 // commands that were sent
	Results   uint64 // reports of results that arrived, readable or not
	Statuses  uint64 // reports of status that arrived, readable or not
	Dropped   uint64 // reports that were dropped because too many were waiting
	Malformed uint64 // reports that could not be read
	Newer     uint64 // reports of a newer protocol
	Flooded   uint64 // reports that were dropped because their agent sends too much
}
