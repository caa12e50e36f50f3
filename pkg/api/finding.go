package api

// Severity says how bad a [DoctorFinding] is.
type Severity string

// The severities, the worst first.
const (
	SeverityError   Severity = "error"   // something does not work, or will not
	SeverityWarning Severity = "warning" // it works, and not as was meant, or not for long
	SeverityNote    Severity = "note"    // a person has made it so, and may have forgotten
)

// DoctorFinding is one thing that is wrong with a configuration, a host or a cluster. ID names its kind and never changes: package finding
// has all of them.
type DoctorFinding struct {
	ID       string   `json:"id" bound:"len=64"`
	Severity Severity `json:"severity" bound:"len=16"`
	Node     string   `json:"node,omitempty" bound:"len=255"` // whose host it is of
	Subject  string   `json:"subject" bound:"len=1024 text"`  // what it is about: a node, a job, FILE:LINE
	Evidence string   `json:"evidence" bound:"len=2048 text"` // what was seen, with the figures
	Remedy   string   `json:"remedy" bound:"len=1024 text"`   // what to do
}

// FindingsReply is `gctl doctor --json`, and what `check` and `verify` say with --json.
type FindingsReply struct {
	SchemaVersion int             `json:"schema_version"`
	Checked       int             `json:"checked"` // kinds of findings that were looked for
	Findings      []DoctorFinding `json:"findings"`
}
