package rankenv

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/core/container"
)

// aboutOneJob are the GANG_ names that an outer job leaves in the environment of a job
// submitted from inside it. What a person sets for the commands stays, GANG_DIR where the node has no relay.
var aboutOneJob = map[string]bool{
	MarkerName: true, ProgramsName: true,
	"GANG_JOB_ID": true, "GANG_JOB_NAME": true, "GANG_EPOCH": true, "GANG_RESTART_COUNT": true, "GANG_RANK": true,
	"GANG_SIZE": true, "GANG_LOCAL_RANK": true, "GANG_LOCAL_SIZE": true, "GANG_NODE_RANK": true, "GANG_NNODES": true,
	"GANG_NODELIST": true, "GANG_PORTS": true, container.EnvName: true, "GANG_PEERS": true, "GANG_ROLE": true, "GANG_ROLE_RANK": true,
	"GANG_ROLE_SIZE": true, "GANG_ROLES": true, "GANG_CHECKPOINT_DIR": true, "GANG_CHECKPOINT_FILE": true,
	"GANG_STATUS_FILE": true, "GANG_SOCKET": true, "GANG_CONTROLLER": true, "CHECKPOINT_DATA": true, "NOTIFY_SOCKET": true,
	"WATCHDOG_USEC": true, "WATCHDOG_PID": true,
	"RANK": true, "WORLD_SIZE": true, "LOCAL_RANK": true, "LOCAL_WORLD_SIZE": true, "MASTER_ADDR": true, "MASTER_PORT": true,
	"CUDA_VISIBLE_DEVICES": true, "GPU_DEVICE_ORDINAL": true, "ROCR_VISIBLE_DEVICES": true, "ZE_AFFINITY_MASK": true,
}

// askedOfSteps are variables by which the submitter asks something of srun in the script, as his login file or a launcher sets them. No
// job sets one of these itself, so that none is left by an outer one.
var askedOfSteps = setOf("ACCOUNT BCAST BCAST_EXCLUDE BITSTR_LEN BURST_BUFFER CLUSTERS COMPRESS CONSTRAINT CORE_SPEC DEBUG DELAY_BOOT " +
	"DEPENDENCY DISABLE_STATUS EPILOG EXACT EXCLUSIVE EXIT_ERROR EXIT_IMMEDIATE GRES GRES_FLAGS HOSTFILE IMMEDIATE KILL_BAD_EXIT " +
	"MPI_TYPE NETWORK NO_KILL OPEN_MODE OVERLAP PARTITION POWER PROLOG PROPAGATE QOS REMOTE_CWD REQ_SWITCH RESERVATION RESV_PORTS " +
	"SEND_LIBS SIGNAL SPREAD_JOB SRUN_REDUCE_TASK_EXIT_MSG STDERRMODE STDINMODE STDOUTMODE STEP_KILLED_MSG_NODE_ID " +
	"TASK_EPILOG TASK_PROLOG THREADS THREAD_SPEC TIMELIMIT TIME_FORMAT UNBUFFEREDIO USE_MIN_NODES WAIT WAIT4SWITCH WCKEY WHOLE")

// AskedOfSteps reports that a variable of the submitter is for the srun in his script.
func AskedOfSteps(name string) bool { return askedOfSteps[name] }

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(words) {
		set["SLURM_"+name] = true
	}
	return set
}

// inherited reports that a variable of the submitter is the job's too. What srun in it exports is asked
// for at the submission.
func inherited(name string) bool {
	return name == "SLURM_EXPORT_ENV" || askedOfSteps[name] || !aboutOneJob[name] && !strings.HasPrefix(name, rolePeers) &&
		!strings.HasPrefix(name, "SLURM_") && !strings.HasPrefix(name, "SLURMD_")
}

// env is an environment in order, each name once.
type env struct {
	list []string
	at   map[string]int
}

// newEnv takes over what is to be kept. Entries that no process could have (no name,
// a NUL) are dropped: they would make every exec fail. Of a repeated name the last counts.
func newEnv(from []string, keep func(name string) bool) *env {
	e := &env{at: make(map[string]int, len(from)+64)}
	for _, kv := range from {
		name, value, ok := strings.Cut(kv, "=")
		if ok && name != "" && keep(name) && strings.IndexByte(kv, 0) < 0 {
			e.set(name, value)
		}
	}
	return e
}

func (e *env) set(name, value string) {
	if i, ok := e.at[name]; ok {
		e.list[i] = name + "=" + value
		return
	}
	e.at[name] = len(e.list)
	e.list = append(e.list, name+"="+value)
}

func (e *env) setInt(name string, n int) { e.set(name, strconv.Itoa(n)) }

// preset sets a name that the person did not set; an empty value is none.
func (e *env) preset(name, value string) {
	if _, ok := e.at[name]; !ok && value != "" {
		e.set(name, value)
	}
}

func (e *env) add(list []string) {
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		e.set(name, value)
	}
}

// setGiven sets a name that has a value.
func (e *env) setGiven(name, value string) {
	if value != "" {
		e.set(name, value)
	}
}

func (e *env) get(name string) string {
	i, ok := e.at[name]
	if !ok {
		return ""
	}
	return e.list[i][len(name)+1:]
}

func (e *env) drop(name string) {
	i, ok := e.at[name]
	if !ok {
		return
	}
	e.list = slices.Delete(e.list, i, i+1)
	delete(e.at, name)
	for n, j := range e.at {
		if j > i {
			e.at[n] = j - 1
		}
	}
}

func (e *env) clone() *env { return &env{slices.Clone(e.list), maps.Clone(e.at)} }
