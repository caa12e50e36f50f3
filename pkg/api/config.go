package api

// When a change of a key of the configuration counts.
const (
	ChangeLive    = "live"     // with the answer of the reload
	ChangeNextJob = "next job" // likewise; a job that runs may keep what it started with
	ChangeRestart = "restart"  // when the daemon is started again, which touches no job
)

// ConfigChange is one key of a configuration that is otherwise than before.
type ConfigChange struct {
	Key   string `json:"key"` // grace, partition[gpu].max_time; of a table that comes or goes partition[gpu]
	Was   string `json:"was"` // as the daemon goes by it; empty: it was not there
	Is    string `json:"is"`  // as the file says; empty: it is not there any more
	When  string `json:"when"`
	Place string `json:"place,omitempty"` // FILE:LINE, where it stands in a file
}

// ReloadReply says what a reload has changed, on record and in force when it comes.
type ReloadReply struct {
	SchemaVersion int                 `json:"schema_version"`
	File          string              `json:"file"`
	Changes       []ConfigChange      `json:"changes"`
	Restart       []ConfigChange      `json:"restart"` // what waits for a restart
	Warnings      []DoctorFinding     `json:"warnings"`
	Controllers   []ControllerFollows `json:"controllers,omitempty"` // the others, where there are several
}

// AgainstReply is `check --against=running --json`: what a reload would change, and what a restart would.
type AgainstReply struct {
	SchemaVersion int             `json:"schema_version"`
	Changes       []ConfigChange  `json:"changes"`
	Restart       []ConfigChange  `json:"restart"`
	Warnings      []DoctorFinding `json:"warnings"`
}

// ControllerFollows is what became of a reload on another controller.
type ControllerFollows struct {
	Name string `json:"name"`
	Took bool   `json:"took"`
	Why  string `json:"why,omitempty"` // why not
}

// Text says a change on one line.
func (c *ConfigChange) Text() string {
	switch {
	case c.Was == "":
		return c.Key + ": new, " + c.Is
	case c.Is == "":
		return c.Key + ": not there any more, was " + c.Was
	}
	return c.Key + ": " + c.Was + " -> " + c.Is
}
