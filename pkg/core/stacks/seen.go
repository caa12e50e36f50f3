package stacks

import (
	"slices"
	"strings"

	"gangd/pkg/api"
)

// Seen is what a thread does: state is its letter in /proc, call the name of its system call and wchan the function of the kernel
// that it waits in, either empty where it is not known.
func Seen(state byte, call, wchan string) api.ThreadStack {
	switch state {
	case 'R':
		return api.ThreadStack{Does: api.DoesRun}
	case 'T', 't':
		return api.ThreadStack{Does: api.DoesStop}
	case 'D':
		return api.ThreadStack{Does: api.DoesDisk, In: firstOf(wchan, call)}
	}
	if does, ok := byCall[call]; ok {
		return api.ThreadStack{Does: does, In: call}
	}
	for _, k := range byKernel {
		if strings.Contains(wchan, k.part) {
			return api.ThreadStack{Does: k.does, In: wchan}
		}
	}
	return api.ThreadStack{Does: api.DoesOther, In: firstOf(call, wchan)}
}

func firstOf(a, b string) string {
	if a == "" {
		a = b
	}
	return short(a, 64)
}

var byCall = map[string]string{
	"futex": api.DoesLock, "futex_waitv": api.DoesLock,
	"nanosleep": api.DoesSleep, "clock_nanosleep": api.DoesSleep,
	"poll": api.DoesPoll, "ppoll": api.DoesPoll, "select": api.DoesPoll, "pselect6": api.DoesPoll, "epoll_wait": api.DoesPoll,
	"epoll_pwait": api.DoesPoll, "epoll_pwait2": api.DoesPoll,
	"read": api.DoesRead, "readv": api.DoesRead, "pread64": api.DoesRead, "preadv": api.DoesRead, "preadv2": api.DoesRead,
	"recvfrom": api.DoesRead, "recvmsg": api.DoesRead, "recvmmsg": api.DoesRead, "accept": api.DoesRead, "accept4": api.DoesRead,
	"write": api.DoesWrite, "writev": api.DoesWrite, "pwrite64": api.DoesWrite, "pwritev": api.DoesWrite, "sendto": api.DoesWrite,
	"sendmsg": api.DoesWrite, "fsync": api.DoesWrite, "fdatasync": api.DoesWrite,
	"wait4": api.DoesChild, "waitid": api.DoesChild,
}

// byKernel is for where the system call may not be read: the kernel shows it to who may trace, the function to who may look.
var byKernel = []struct{ part, does string }{
	{"futex", api.DoesLock}, {"nanosleep", api.DoesSleep}, {"hrtimer_sleep", api.DoesSleep},
	{"poll", api.DoesPoll}, {"do_select", api.DoesPoll}, {"do_sys_", api.DoesPoll},
	{"pipe_read", api.DoesRead}, {"pipe_write", api.DoesWrite}, {"stream_read", api.DoesRead}, {"tcp_recv", api.DoesRead},
	{"sk_wait_data", api.DoesRead}, {"wait_woken", api.DoesRead},
	{"skb_wait", api.DoesRead}, {"accept", api.DoesRead}, {"stream_wait_mem", api.DoesWrite},
	{"do_wait", api.DoesChild}, {"kernel_wait", api.DoesChild},
	{"do_signal_stop", api.DoesStop}, {"ptrace_stop", api.DoesStop},
}

// Join makes one of several looks at the same thread, the first one first: what it did each time, and the calls that it stayed in.
// The lines and values of those count where the calls were the same each time.
func Join(looks []api.ThreadStack) api.ThreadStack {
	if len(looks) == 0 {
		return api.ThreadStack{Does: api.DoesOther}
	}
	out := looks[0]
	known := out.Frames != nil
	for _, l := range looks[1:] {
		if l.Does != out.Does {
			out.Does, out.In = api.DoesMove, ""
		}
		switch {
		case l.Frames == nil: // not had this time
		case !known:
			out.Frames, out.Lines, out.Values, known = l.Frames, l.Lines, l.Values, true
		case slices.Equal(out.Frames, l.Frames):
			out.Lines, out.Values = sameLines(out.Lines, l.Lines), sameValues(out.Values, l.Values)
		default:
			out.Frames, out.Lines, out.Values = shared(out.Frames, l.Frames), nil, nil
		}
	}
	if out.Does == api.DoesMove || out.Does == api.DoesRun && slices.Contains(out.Lines, 0) {
		out.Lines = nil
	}
	if out.Lines == nil {
		out.Values = nil
	}
	return out
}

// sameLines are those of the same calls, seen twice: 0 where they differ. None, where nothing is known of either time.
func sameLines(a, b []int) []int {
	if len(a) != len(b) {
		return nil
	}
	out := slices.Clone(a)
	for i := range out {
		if b[i] != out[i] {
			out[i] = 0
		}
	}
	return out
}

// sameValues are those that two looks at the same calls have in common.
func sameValues(a, b []api.StackValue) []api.StackValue {
	return slices.DeleteFunc(slices.Clone(a), func(v api.StackValue) bool { return !slices.Contains(b, v) })
}

// shared are the outermost calls that two stacks have in common.
func shared(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return slices.Clone(a[len(a)-n:])
}

// within: one of the stacks is what the other one has outermost.
func within(a, b []string) bool { return len(shared(a, b)) == min(len(a), len(b)) }
