package gozzard

// Group is a resource pool of the processes of one namespace on one host. Limits are percent of the whole machine,
// 0 is none. Weight 0 chooses the process that uses most, weight 1 the one that uses most of its own limit.
type Group struct {
	Namespace string  `json:"namespace"`
	ID        string  `json:"id"`
	CPULimit  float64 `json:"cpu_limit"`
	MemLimit  float64 `json:"mem_limit"`
	CPUWeight int     `json:"cpu_weight"`
	MemWeight int     `json:"mem_weight"`
}
