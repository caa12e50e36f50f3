package pmi

// What gstep and gpmix, the server of PMIx beside it, say to each other: a JSON object a line. gstep says an [XJob], then an [XPassed] for
// each fence; gpmix says [XSaid], of which the first has the environments or an error.

// XNode is a node of a step.
type XNode struct {
	Name  string `json:"name"`
	Tasks []int  `json:"tasks"`
}

// XJob is the step as it is served on one of its nodes.
type XJob struct {
	Namespace string   `json:"namespace"`
	Library   []string `json:"library"` // names of libpmix, of which the first that can be opened serves
	Dir       string   `json:"dir"`     // empty, of the user's; what libpmix makes is there
	Nodes     []XNode  `json:"nodes"`
	Part      int      `json:"part"` // of Nodes
}

// XPassed is a fence that all nodes are at.
type XPassed struct {
	Data []byte `json:"data"` // what the tasks of all published
}

// XSaid is what a server says.
type XSaid struct {
	Error string     `json:"error,omitempty"` // why it does not serve
	Env   [][]string `json:"env,omitempty"`   // of each task here, NAME=VALUE
	Fence bool       `json:"fence,omitempty"` // all tasks here are at one
	Data  []byte     `json:"data,omitempty"`  // what they published
	Abort *XAbort    `json:"abort,omitempty"`
}

// XAbort is a task's wish that the step ends.
type XAbort struct {
	Task int    `json:"task"`
	Text string `json:"text"`
}
