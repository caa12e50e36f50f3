package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/api/rlimit"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/node/gpu/simgpu"
	"gangd/pkg/node/proc"
)

// check says what is wanted of a value that converted; nil accepts all.
type check func(v any) error

// maxSocketPath is what sun_path holds besides its closing zero byte.
const maxSocketPath = 107

const wantName = "want 1 to 63 of a-z 0-9 . - that begin and end with a letter or digit"

var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// nameOK holds for names of nodes: they become parts of paths and of certificates.
func nameOK(s string) bool { return nameRE.MatchString(s) && !strings.Contains(s, "..") }

func portRange(v any) error {
	_, err := api.ParsePortRange(v.(string))
	if err != nil {
		return errors.New("want FIRST-LAST, both from 1024 to 65535, such as 12000-12999, or an empty string for none")
	}
	return nil
}

const wantPartition = "want 1 to 63 of a-z A-Z 0-9 . _ - that begin and end with a letter or digit"

// partitionRE is wider than nameRE: scripts that come from other sites name partitions
// such as GPU_long, and a partition's name is shown and compared, no more.
var partitionRE = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

var (
	wantDuration = "want a duration with a unit, such as 500ms, 15s, 10m or 1d"
	wantSize     = "want a size, such as 500MiB, 5GiB or 80G"
	wantInt      = "want a whole number"
	wantTables   = "want tables written [[%s]], each with a name" // of a key
	wantList     = "want a list of strings, such as [\"a\", \"b\"]"
)

// wanted is what is wrong with one value.
type wanted struct {
	raw  any
	text string
}

func (w *wanted) Error() string { return w.text }

// convert is the decode hook for what a person writes: durations, sizes, lists (from the command line
// separated by commas), and no value of another type than its key's.
func convert(from, to reflect.Value) (any, error) {
	raw := from.Interface()
	v, err := convertTo(raw, to.Type())
	if err != nil {
		return nil, &wanted{raw, err.Error()}
	}
	return v, nil
}

func convertTo(raw any, t reflect.Type) (any, error) {
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return raw, tables(raw)
	case t.Kind() == reflect.Slice:
		return convertList(raw)
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Pointer: // their parts come by themselves
		return raw, nil
	}
	switch raw.(type) {
	case []any, map[string]any:
		return nil, errors.New("want one value")
	}
	s := strings.TrimSpace(fmt.Sprint(raw))
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return parseDuration(s)
	case t.Kind() == reflect.Int64:
		return parseSize(s)
	case t.Kind() == reflect.Int:
		n, err := strconv.Atoi(s)
		return n, because(err, wantInt)
	case t.Kind() == reflect.Uint32:
		n, err := strconv.ParseUint(s, 10, 32)
		return uint32(n), because(err, "want a whole number from 0 to 4294967295")
	case t.Kind() == reflect.Bool:
		if s != "true" && s != "false" {
			return nil, errors.New("want true or false")
		}
		return s == "true", nil
	}
	if _, text := raw.(string); !text {
		return nil, errors.New("want a string in quotes")
	}
	return s, nil
}

// tables refuses what stands in place of tables.
func tables(raw any) error {
	all, ok := raw.([]any)
	for _, e := range all {
		if _, table := e.(map[string]any); !table {
			ok = false
		}
	}
	if !ok {
		return errors.New(wantTables)
	}
	return nil
}

// pointedTo is a value, or what it points to: a pointer is a key whose absence means something else than zero.
func pointedTo(v any) any {
	switch p := v.(type) {
	case *int:
		return *p
	case *bool:
		return *p
	case *time.Duration:
		return *p
	}
	return v
}

func because(err error, want string) error {
	if err != nil {
		return errors.New(want)
	}
	return nil
}

func convertList(raw any) ([]string, error) {
	out := []string{}
	switch v := raw.(type) {
	case string:
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok || strings.TrimSpace(s) == "" {
				return nil, errors.New(wantList)
			}
			out = append(out, strings.TrimSpace(s))
		}
	default:
		return nil, errors.New(wantList)
	}
	return out, nil
}

// parseDuration reads Go's durations, days, and "off" for none. A bare number is refused:
// 15 means minutes to Slurm's users and seconds to others.
func parseDuration(s string) (time.Duration, error) {
	if s == "off" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, because(err, wantDuration)
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errors.New("negative")
	}
	return d, because(err, wantDuration)
}

// parseSize reads bytes. K, KB and KiB are all 1024, as in Slurm and in job scripts.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRightFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	unit := strings.ToUpper(strings.TrimSpace(s[len(digits):]))
	shift := 0
	if unit != "" {
		short := strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "I")
		i := strings.Index("KMGTP", short)
		if len(short) > 1 || i < 0 || strings.HasSuffix(unit, "I") {
			return 0, errors.New(wantSize)
		}
		if short != "" {
			shift = 10 * (i + 1)
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 || n*float64(int64(1)<<shift) > math.MaxInt64/2 {
		return 0, errors.New(wantSize)
	}
	return int64(n * float64(int64(1)<<shift)), nil
}

func atLeast(least time.Duration) check {
	return func(v any) error {
		if v.(time.Duration) < least {
			return fmt.Errorf("want at least %v", least)
		}
		return nil
	}
}

func within(least, most time.Duration) check {
	return func(v any) error {
		if d := v.(time.Duration); d < least || d > most {
			return fmt.Errorf("want %v to %v", least, most)
		}
		return nil
	}
}

func atLeastBytes(least int64) check {
	return func(v any) error {
		if v.(int64) < least {
			return fmt.Errorf("want at least %d bytes", least)
		}
		return nil
	}
}

func between(low, high int) check {
	return func(v any) error {
		if n := v.(int); n < low || n > high {
			return fmt.Errorf("want %d to %d", low, high)
		}
		return nil
	}
}

func oneOf(words ...string) check {
	return func(v any) error {
		for _, w := range words {
			if fmt.Sprint(v) == w { // of a type of its own, too
				return nil
			}
		}
		return fmt.Errorf("want %s", strings.Join(words, " or "))
	}
}

// limitNames are those of --propagate.
func limitNames(v any) error {
	text, _ := v.(string)
	_, err := rlimit.Soft{}.Choose(text)
	return err
}

// hostLists are names of nodes, n3, and lists of them, n[1-4].
func hostLists(v any) error {
	for _, s := range v.([]string) {
		names, err := hostlist.Expand(s)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !nameOK(name) {
				return fmt.Errorf("%q: %s", name, wantName)
			}
		}
	}
	return nil
}

// expanded are the names of lists that hostLists has seen.
func expanded(lists []string) (names []string) {
	for _, s := range lists {
		list, _ := hostlist.Expand(s)
		names = append(names, list...)
	}
	return names
}

// features are words that a constraint can name.
func features(v any) error {
	for _, s := range v.([]string) {
		if s == "" || strings.ContainsAny(s, " \t,&|*()[]!\"'") {
			return fmt.Errorf("%q: want a word without blanks and , & | * ( ) [ ] !, as --constraint has it", s)
		}
	}
	return nil
}

// database is a URL or settings of PostgreSQL; what its client thinks of them it says when it connects.
func database(v any) error {
	s := v.(string)
	scheme, _, isURL := strings.Cut(s, "://")
	switch {
	case s == "":
	case isURL && scheme != "postgres" && scheme != "postgresql":
		return fmt.Errorf("want a URL of postgres, not of %s", scheme)
	case isURL:
		if _, err := url.Parse(s); err != nil {
			return errors.New("want a URL such as postgres://gangd@db/gangd") // without its text, which may have a password
		}
	case !strings.Contains(s, "="):
		return errors.New("want a URL such as postgres://gangd@db/gangd, or KEY=VALUE pairs: host=db dbname=gangd")
	}
	return nil
}

// cards are a word for how the machine's are found, or simulated ones.
func cards(v any) error {
	switch s := v.(string); s {
	case "":
		return errors.New("want a value")
	case "auto", "nvml", "none":
		return nil
	default:
		_, err := simgpu.Parse(s, "n1")
		return err
	}
}

func absolute(v any) error {
	if s := v.(string); s != "" && !filepath.IsAbs(s) {
		return errors.New("want an absolute path")
	}
	return nil
}

// cgroupDir is a directory of a control group hierarchy, or the word for none.
func cgroupDir(v any) error {
	if v.(string) == proc.NoCgroups {
		return nil
	}
	if absolute(v) != nil {
		return errors.New("want an absolute path, or none")
	}
	return nil
}

func relaySocket(v any) error {
	if v == noRelay {
		return nil
	}
	return socketPath(v)
}

func cpuList(v any) error {
	_, err := cpus.Parse(v.(string))
	return err
}

func jobLimits(v any) error {
	_, err := proc.JobLimits(v.([]string))
	return err
}

func absolutePaths(v any) error {
	for _, s := range v.([]string) {
		if !filepath.IsAbs(s) {
			return fmt.Errorf("%q: want absolute paths", s)
		}
	}
	return nil
}

func socketPath(v any) error {
	if err := absolute(v); err != nil {
		return err
	}
	if n := len(v.(string)); n > maxSocketPath {
		return fmt.Errorf("want at most %d bytes for the path of a unix socket, this has %d", maxSocketPath, n)
	}
	return nil
}

func listenAddr(v any) error {
	if v == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(v.(string))
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return because(err, "want host:port or :port")
}

func dialAddr(v any) error {
	if v == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(v.(string))
	if err != nil || host == "" || listenAddr(v) != nil {
		return errors.New("want host:port")
	}
	return nil
}

func dialAddrs(v any) error {
	for _, a := range v.([]string) {
		if err := dialAddr(a); err != nil {
			return err
		}
	}
	return nil
}

// controllerAddrs are those of several controllers, all on unix sockets or all over the network.
func controllerAddrs(v any) error {
	unix := 0
	all := v.([]string)
	for _, a := range all {
		if err := controllerAddr(a); err != nil {
			return err
		}
		if strings.HasPrefix(a, "unix:") {
			unix++
		}
	}
	if unix > 0 && unix < len(all) {
		return errors.New("want all of unix:/path, or all of host:port")
	}
	return nil
}

func controllerAddr(v any) error {
	if path, ok := strings.CutPrefix(v.(string), "unix:"); ok {
		if path == "" || socketPath(path) != nil {
			return errors.New("want unix:/absolute/path of at most 107 bytes, or host:port")
		}
		return nil
	}
	return because(dialAddr(v), "want unix:/absolute/path, or host:port")
}
