package auth

import "gangd/pkg/api"

// Op is an operation on the controller.
type Op string

// The operations.
const (
	OpSubmit      Op = "submit"
	OpList        Op = "list"
	OpShow        Op = "show"
	OpWait        Op = "wait"
	OpEvents      Op = "events"
	OpLive        Op = "live" // the table of the queue and the nodes, as they change
	OpWeb         Op = "web"  // log in at the page
	OpLog         Op = "log"
	OpStacks      Op = "stacks" // see where the processes of a job are
	OpScript      Op = "script" // read what was submitted
	OpCancel      Op = "cancel"
	OpSignal      Op = "signal"
	OpStep        Op = "step" // start a step in a job, or attach to one: what runs is the owner's
	OpHold        Op = "hold"
	OpRelease     Op = "release"
	OpRequeue     Op = "requeue"
	OpUpdate      Op = "update"
	OpNodes       Op = "nodes"
	OpNodeDrain   Op = "node-drain"
	OpNodeResume  Op = "node-resume"
	OpNodeSet     Op = "node-features"
	OpNodeFence   Op = "node-fence"
	OpNodeReboot  Op = "node-reboot"
	OpNodeForget  Op = "node-forget"
	OpCardDrain   Op = "card-drain"
	OpCardResume  Op = "card-resume"
	OpPartition   Op = "partition" // make, change and delete partitions
	OpCrontab     Op = "crontab"   // read and replace a user's cron table
	OpReserve     Op = "reserve"   // make, change and delete reservations
	OpToken       Op = "token"     // make a join token, revoke a node
	OpPing        Op = "ping"
	OpSession     Op = "session"
	OpMetrics     Op = "metrics"
	OpControllers Op = "controllers"  // list the controllers, and how far each has followed
	OpLedger      Op = "ledger"       // what was used, by whom
	OpOutbox      Op = "outbox"       // what the caller is to be told and was not yet
	OpRetryOutbox Op = "retry-outbox" // try once more what was given up
	OpVerify      Op = "verify"       // recount memory and store
	OpReload      Op = "reload"       // have the configuration read again
	OpBackup      Op = "backup"       // copy the state to a directory on the controller's host
)

// role is what a caller is towards a thing.
type role uint8

const (
	roleNone  role = iota
	roleOwner      // the thing is theirs
	roleAdmin
	roleOther // a user, and the thing is someone else's
	roleNode
	roleLogin // a login host for itself
	roleRelay // the owner, by a relay's word; an admin is no more than that there
	roleGuest // somebody who looks at the page of a site that lets strangers
)

// roles is a set of them.
type roles uint8

func only(rs ...role) (s roles) {
	for _, r := range rs {
		s |= 1 << r
	}
	return s
}

func (s roles) has(r role) bool { return s&(1<<r) != 0 }

var (
	anyUser = only(roleOwner, roleAdmin, roleOther, roleRelay)
	owners  = only(roleOwner, roleAdmin, roleRelay)
	admins  = only(roleAdmin)
)

// table is who may do what. What is not in it is denied to everyone.
//
// The queue is open to all users of the cluster, as in Slurm: without it nobody could be
// told why they wait. What a job wrote (log) and what changes it is its owner's.
var table = map[Op]roles{
	OpSubmit:      owners,
	OpList:        anyUser,
	OpShow:        anyUser,
	OpWait:        anyUser,
	OpEvents:      anyUser,
	OpLive:        anyUser | only(roleGuest),
	OpWeb:         anyUser,
	OpLog:         owners,
	OpStacks:      owners,
	OpScript:      owners,
	OpCancel:      owners,
	OpSignal:      owners,
	OpStep:        owners,
	OpHold:        owners,
	OpRelease:     owners,
	OpRequeue:     owners,
	OpUpdate:      owners,
	OpNodes:       anyUser | only(roleGuest),
	OpNodeDrain:   admins,
	OpNodeResume:  admins,
	OpNodeSet:     admins,
	OpNodeFence:   admins,
	OpNodeReboot:  admins,
	OpNodeForget:  admins,
	OpCardDrain:   admins,
	OpCardResume:  admins,
	OpPartition:   admins,
	OpCrontab:     owners,
	OpReserve:     admins,
	OpToken:       admins,
	OpPing:        anyUser | only(roleNode, roleLogin),
	OpSession:     only(roleNode),
	OpMetrics:     anyUser,
	OpControllers: anyUser | only(roleNode, roleLogin),
	OpLedger:      anyUser,
	OpOutbox:      owners,
	OpRetryOutbox: admins,
	OpVerify:      admins,
	OpReload:      admins,
	OpBackup:      admins,
}

// Allow reports whether the caller may do op to what belongs to owner. For operations
// without a job (submit, list of all, nodes, ping) owner is the caller's own uid.
func Allow(op Op, id Identity, owner uint32) bool {
	return table[op].has(roleOf(op, id, owner))
}

func roleOf(op Op, id Identity, owner uint32) role {
	switch id.Kind {
	case KindUser:
		switch {
		case op == OpSession && id.Host:
			return roleNode
		case id.Admin:
			return roleAdmin
		case id.UID == owner:
			return roleOwner
		}
		return roleOther
	case KindRelay:
		switch {
		// It should not get this far; a relay's word is still not enough for root.
		case id.UID == 0:
			return roleNone
		case id.UID == owner:
			return roleRelay
		}
		return roleOther
	case KindNode:
		return roleNode
	case KindLogin:
		return roleLogin
	case KindGuest:
		return roleGuest
	}
	return roleNone
}

// Denied refuses op to a caller who may not do it to anything, and says who may.
func Denied(op Op, id Identity) *api.Error {
	e := api.Errorf(api.CodePermission, "not allowed: %s", op)
	e.Hint = id.Why
	if e.Hint == "" && id.Kind != KindNone && table[op] == admins {
		e.Hint = "root and the users of the setting admins may, on the controller's host"
	}
	return e
}

// SessionNode is the name that a node session of this caller must carry; "" with ok means
// any (see [Identity.Host]).
func SessionNode(id Identity) (name string, ok bool) {
	if !Allow(OpSession, id, 0) {
		return "", false
	}
	return id.Node, true
}

// noJob is the answer about a job that is unknown, and about one that the caller may not
// know of: the same, so that ids can't be probed.
func noJob(ref string) *api.Error {
	return &api.Error{Code: api.CodeNotFound, Message: "no job " + ref, Hint: "see gqueue"}
}

// Refuse is nil when the caller may do op to the job, else the refusal: [noJob] where the
// caller may not even see it.
func Refuse(op Op, id Identity, owner uint32, ref, user string) *api.Error {
	switch {
	case Allow(op, id, owner):
		return nil
	case !Allow(OpShow, id, owner):
		return noJob(ref)
	}
	return api.Errorf(api.CodePermission, "job %s belongs to %s: only its owner or an admin %s", ref, user, deed(op)).About(api.ReasonOwner,
		user)
}

func deed(op Op) string {
	switch op {
	case OpLog:
		return "may read its output"
	case OpScript:
		return "may read its script"
	}
	return "may " + string(op) + " it"
}
