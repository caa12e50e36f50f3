package api

// Switch is one switch of a site's network: over nodes, or over other switches.
type Switch struct {
	Name     string   `json:"name"`
	Level    int      `json:"level"`              // 0: over nodes
	Nodes    []string `json:"nodes"`              // all below it, sorted
	Switches []string `json:"switches,omitempty"` // directly below it
	Parent   string   `json:"parent,omitempty"`   // empty: the top
}
