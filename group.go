package gozzard

// Group is a resource pool that the processes of one namespace on one host share. Its limits are percent of the whole
// machine; 0 means no limit. When the pool is over a limit, weight 0 selects the process that uses most, and weight 1
// selects the process that uses the largest part of the limit in its definition.
type Group struct {
	Namespace string  `json:"namespace"`
	ID        string  `json:"id"`
	CPULimit  float64 `json:"cpu_limit"`
	MemLimit  float64 `json:"mem_limit"`
	CPUWeight int     `json:"cpu_weight"`
	MemWeight int     `json:"mem_weight"`
}
