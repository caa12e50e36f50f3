package config

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Node is the configuration of gnoded.
type Node struct {
	Name string `mapstructure:"name"`
	// Dir, when set, is the root of a cluster in one directory (gangd dev), as in
	// [Controller].
	Dir             string   `mapstructure:"dir"`
	StateDir        string   `mapstructure:"state_dir"`
	Controllers     []string `mapstructure:"controller"` // "unix:/path" or "host:port"
	ControllerAsked bool     // the site named Controllers: where the host joined does not matter
	Address         string   `mapstructure:"address"` // where ranks of other nodes reach this one
	Cards           string   `mapstructure:"cards"`   // "auto", "nvml", "none", or simulated: "8x80G"
	SimGPUFile      string   `mapstructure:"sim_gpu_file"`
	CPUs            int      `mapstructure:"cpus"`     // 0: detect
	CPUBind         string   `mapstructure:"cpu_bind"` // "auto", "cores", "none"
	MemoryNear      bool     `mapstructure:"memory_near"`
	CPUList         string   `mapstructure:"cpu_list"` // "0-63"; empty: all
	Memory          int64    `mapstructure:"memory"`   // bytes, 0: detect
	Features        []string `mapstructure:"features"`
	Cgroup          string   `mapstructure:"cgroup"`        // directory for members' cgroups, "none"; empty: found
	Processes       int      `mapstructure:"job_processes"` // 0: a part of what the machine can have
	JobLimits       []string `mapstructure:"job_limits"`    // NAME=SOFT[:HARD], over those of a login
	MinUID          uint32   `mapstructure:"min_uid"`
	Groups          []string `mapstructure:"groups"` // users outside all of these are refused; empty: anyone
	Socket          string   `mapstructure:"socket"` // the relay's; empty: no relay
	SocketAsked     bool     // the site named Socket: the daemon does not go without it
	Login           bool     `mapstructure:"login"` // the relay alone
	LogFormat       string   `mapstructure:"log_format"`

	RebootProgram  string        `mapstructure:"reboot_program"` // empty: none
	HealthProgram  string        `mapstructure:"health_program"` // empty: none
	HealthInterval time.Duration `mapstructure:"health_interval"`
	HealthTimeout  time.Duration `mapstructure:"health_timeout"`

	Containers      bool     `mapstructure:"containers"`
	ContainerImages []string `mapstructure:"container_images"`
	ContainerMounts []string `mapstructure:"container_mounts"`
	ContainerDirs   []string `mapstructure:"container_mount_dirs"`
	ContainerDriver string   `mapstructure:"container_driver"` // empty: nothing is imported
	Registries      []string `mapstructure:"container_registries"`
	ContainerCache  string   `mapstructure:"container_cache"`
	CacheHigh       int64    `mapstructure:"container_cache_high"` // bytes, 0: a part of the disk
	CacheLow        int64    `mapstructure:"container_cache_low"`

	ImportTimeout time.Duration `mapstructure:"import_timeout"`

	PrivateDirs []string `mapstructure:"private_dirs"`
	PrivatePath string   `mapstructure:"private_path"`
	PrivateSize int64    `mapstructure:"private_size"` // bytes, 0: a part of the memory

	Prolog      string        `mapstructure:"prolog"` // a file or a directory; empty: none
	Epilog      string        `mapstructure:"epilog"`
	TaskProlog  string        `mapstructure:"task_prolog"`
	TaskEpilog  string        `mapstructure:"task_epilog"`
	HookTimeout time.Duration `mapstructure:"hook_timeout"`

	ExpectCards   int      `mapstructure:"expect_cards"`  // 0: any
	ExpectMemory  int64    `mapstructure:"expect_memory"` // bytes, 0: any
	RequireMounts []string `mapstructure:"require_mounts"`
	RequireNames  []string `mapstructure:"require_names"`
}

// noRelay is the value of socket of a node on which jobs do not reach the controller.
const noRelay = "none"

// LoadNode reads the configuration of gnoded from the file at path ("" for none), applies
// the overrides in set, each key=value, and name over both when it is not empty.
func LoadNode(path, name string, set []string) (*Node, error) {
	file, err := readText(path)
	if err != nil {
		return nil, err
	}
	return nodeOf(file, name, set)
}

func nodeOf(file text, name string, set []string) (*Node, error) {
	n := nodeDefaults()
	if name != "" {
		set = append(set[:len(set):len(set)], "name="+name)
	}
	src, err := load(nodeTable, file, set, n)
	if err != nil {
		return nil, err
	}
	var errs []error
	if n.Login && n.Socket == noRelay {
		errs = append(errs, src.wrong("socket", "a login host is its relay: want a path"))
	}
	n.fill()
	if !nameOK(n.Name) {
		errs = append(errs, src.wrong("name", wantName))
	}
	if n.Socket != "" && n.sameHost() {
		key := "socket"
		if n.Login {
			key = "login"
		}
		errs = append(errs, src.wrong(key, "want controller = \"host:port\" with it: a relay on the controller's own host would make every "+
			"user root to it"))
	}
	if err := src.problems(errs...); err != nil {
		return nil, err
	}
	return n, nil
}

// nodeDefaults are the values that do not depend on the host or on other keys.
func nodeDefaults() *Node {
	return &Node{Cards: "auto", CPUBind: "auto", JobLimits: []string{"memlock=unlimited"}, MinUID: 1000, LogFormat: "text",
		HealthInterval: 5 * time.Minute, HealthTimeout: 30 * time.Second, HookTimeout: 20 * time.Second, ImportTimeout: time.Hour}
}

func (n *Node) fill() {
	host, _ := os.Hostname() // empty is refused as a name, with what is wanted
	if n.Name == "" {
		n.Name, _, _ = strings.Cut(strings.ToLower(host), ".")
	}
	if n.Address == "" {
		n.Address = host
	}
	state, socket := "/var/lib/gnoded", "/run/gangd/gangd.sock"
	if n.Dir != "" {
		state = filepath.Join(n.Dir, "state", n.Name)
		socket = filepath.Join(n.Dir, "run", "gangd.sock")
		if n.SimGPUFile == "" {
			n.SimGPUFile = filepath.Join(n.Dir, "sim", n.Name+".json")
		}
	}
	if n.StateDir == "" {
		n.StateDir = state
	}
	n.ControllerAsked = len(n.Controllers) > 0
	if !n.ControllerAsked {
		n.Controllers = []string{"unix:" + socket}
		if at := n.joined(); at != "" {
			n.Controllers = []string{at}
		}
	}
	n.SocketAsked = n.Login || n.Socket != ""
	switch {
	case n.Socket == noRelay:
		n.Socket = ""
	case n.Socket == "" && (n.Login || !n.sameHost()):
		n.Socket = socket // the place where commands look
	}
}

// JoinedFile holds the address of the controller that this host joined, for a site that configures none.
func (n *Node) JoinedFile() string { return filepath.Join(n.StateDir, "controller") }

func (n *Node) joined() string {
	b, err := os.ReadFile(n.JoinedFile())
	if err != nil {
		return ""
	}
	at := strings.TrimSpace(string(b))
	if controllerAddr(at) != nil {
		return "" // of no use; gnoded join writes it again
	}
	return at
}

// sameHost: the controllers are reached over unix sockets.
func (n *Node) sameHost() bool {
	return len(n.Controllers) > 0 && strings.HasPrefix(n.Controllers[0], "unix:")
}
