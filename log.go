package gozzard

// LogQuery asks an agent for the output of a process. Offset counts bytes from the beginning of the log; -1 asks for
// the last Lines lines.
type LogQuery struct {
	ID     OpID // of the query; the answer has the same
	Key    Key
	Lines  int
	Offset int64
	Max    int // most bytes to return
}

// LogChunk is the answer to a LogQuery.
type LogChunk struct {
	ID     OpID
	Data   []byte
	Offset int64  // of the first byte of Data
	Next   int64  // the offset to ask for next
	Error  string // why there is no Data; "" means none
}
