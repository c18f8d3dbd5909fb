package gozzard

// LogQuery asks an agent for what a process printed. Offset counts bytes since the log began; -1 asks for the last
// Lines lines.
type LogQuery struct {
	ID     OpID // of the question, so that the answer finds who asked
	Key    Key
	Lines  int
	Offset int64
	Max    int // bytes at most
}

// LogChunk is the answer.
type LogChunk struct {
	ID     OpID
	Data   []byte
	Offset int64  // of Data
	Next   int64  // where to go on
	Error  string // in words; "" when Data is good
}
