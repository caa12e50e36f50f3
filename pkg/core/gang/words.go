package gang

import (
	"fmt"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// rankName names a rank for people, with its role where it has one.
func rankName(j *Job, rank int) string {
	if role := j.Spec.RoleName(rank); role != "" {
		return fmt.Sprintf("rank %d (%s)", rank, role)
	}
	return fmt.Sprintf("rank %d", rank)
}

func exitText(j *Job, ra *api.RankActual) string {
	who := rankName(j, ra.Rank)
	switch {
	case ra.Error != "":
		return fmt.Sprintf("%s could not be started: %s", who, ra.Error)
	case ra.CUDAOOM:
		return fmt.Sprintf("%s ran out of VRAM (exit code %d, and its output ends with a CUDA out of memory)", who, ra.ExitCode)
	case hostOOM(ra):
		return fmt.Sprintf("%s was killed because the memory of its node had run out%s", who, memoryText(ra))
	case ra.OOM:
		return fmt.Sprintf("%s ran out of memory%s", who, memoryText(ra))
	case ra.Signal != 0:
		return fmt.Sprintf("%s was ended by signal %d%s", who, ra.Signal, forksText(ra))
	}
	return fmt.Sprintf("%s exited with code %d%s", who, ra.ExitCode, forksText(ra))
}

// memoryText is what the ranks of a node used of what they may.
func memoryText(ra *api.RankActual) string {
	if ra.MemoryUsed == 0 {
		return ""
	}
	if ra.MemoryAsked == 0 {
		return ": used " + cluster.Size(ra.MemoryUsed) + " there, and had asked for no figure"
	}
	return fmt.Sprintf(": used %s of %s asked there", cluster.Size(ra.MemoryUsed), cluster.Size(ra.MemoryAsked))
}

// forksText is whether processes had run out.
func forksText(ra *api.RankActual) string {
	if ra.ForksRefused == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d forks were refused: its node allows a job %d processes)", ra.ForksRefused, ra.ProcessesMax)
}

func survivors(ma *api.MemberActual) string {
	if len(ma.Survivors) == 0 {
		return "stuck: processes survived KILL"
	}
	names := make([]string, len(ma.Survivors))
	for i, s := range ma.Survivors {
		names[i] = fmt.Sprintf("pid %d %s (%s)", s.PID, s.Command, s.State)
	}
	return "stuck: " + strings.Join(names, ", ")
}

// killsText says what was killed, and what of.
func killsText(k *api.MemoryKills) string {
	ra := api.RankActual{MemoryAsked: k.Asked, MemoryUsed: k.Used}
	text := api.Count(k.Count, "process") + " killed for want of memory"
	if k.Count > 1 {
		text = fmt.Sprintf("%d processes killed for want of memory", k.Count)
	}
	if k.Host && k.Asked > 0 {
		text += ", that of its node"
	}
	return text + memoryText(&ra)
}

// rankList names ranks for people: "rank 3 (worker)", "ranks 1, 2, 5 and 12 more".
func rankList(j *Job, ranks []int) string {
	if len(ranks) == 1 {
		return rankName(j, ranks[0])
	}
	return numbers("rank", ranks)
}

// numbers names some of a kind: "task 3", "ranks 1, 2, 5 and 12 more".
func numbers(what string, all []int) string {
	if len(all) == 1 {
		return what + " " + strconv.Itoa(all[0])
	}
	const most = 8
	names := make([]string, min(most, len(all)))
	for i := range names {
		names[i] = strconv.Itoa(all[i])
	}
	if more := len(all) - most; more > 0 {
		return fmt.Sprintf("%ss %s and %d more", what, strings.Join(names, ", "), more)
	}
	return fmt.Sprintf("%ss %s and %s", what, strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
}
