package gozzard

// MaxHistoryPoints is the largest number of points of one History.
const MaxHistoryPoints = 1000

// HistoryStep is the time between two measurements of an agent, in seconds. Agents store a day of them.
const HistoryStep = 10

// NotMeasured is the value of a HistoryPoint that nothing was measured for.
const NotMeasured = -1

// HistoryQuery asks an agent for what it measured of a process, from one time to another in Unix seconds. The agent
// answers with at most Points points: it chooses the step.
type HistoryQuery struct {
	ID     OpID // of the query; the answer has the same
	Key    Key
	From   int64
	To     int64
	Points int
}

// Fine is the query with its beginning at a step, if that fits all measurements of its time into its points. The step in
// which the time begins is half outside: with it, an hour would need 361 points, and the agent would give averages of 20
// seconds to a caller that asks for 360.
func (q HistoryQuery) Fine() HistoryQuery {
	begin := q.From + (HistoryStep-q.From%HistoryStep)%HistoryStep
	if n := q.To - begin; n > 0 && n <= int64(q.Points)*HistoryStep {
		q.From = begin
	}
	return q
}

// History is the answer to a HistoryQuery. Point i is about the Step seconds that begin at From + i*Step.
type History struct {
	ID     OpID
	From   int64 // Unix seconds
	Step   int64 // seconds
	Points []HistoryPoint
	Error  string // why there are no Points; "" means none
}

// HistoryPoint is what was measured of a process and its descendants during one step. NotMeasured stands for a value that is
// not known: the process or the agent did not run, or the agent may not read it.
type HistoryPoint struct {
	CPU      int64 // tenths of a percent of one processor core, the average
	Mem      int64 // bytes of resident memory, the average
	FD       int64 // open descriptors, the largest number
	Restarts int64 // restarts without a request during the step
}

// EmptyPoint is a point of which nothing was measured.
func EmptyPoint() HistoryPoint {
	return HistoryPoint{NotMeasured, NotMeasured, NotMeasured, NotMeasured}
}

// IsEmpty reports whether nothing was measured.
func (p HistoryPoint) IsEmpty() bool { return p == EmptyPoint() }
