package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"gangd/pkg/api"
)

// reference is docs/configuration.md: every key with type, default and meaning.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("\n## gangd\n\n")
	own := controllerTable.rows[:len(controllerTable.rows)-len(settingRows)]
	fields := valuesOf(controllerDefaults())
	writeRows(&b, own, fields)
	b.WriteString("\n### Settings of the site\n\nTop-level keys of the same file, and what `gangd dev --set` takes.\n\n")
	writeRows(&b, settingRows, fields)
	b.WriteString("\n### Partitions\n\nOne `[[partition]]` table each, after all top-level keys. Without any there is one, `main`, of every node.\n\n")
	writeRows(&b, partitionRows, valuesOf(&api.Partition{}))
	b.WriteString("\n### Accounts\n\nOne `[[account]]` table each. Users name theirs with `--account`.\n\n")
	writeRows(&b, accountRows, valuesOf(&Account{}))
	b.WriteString("\n### Licences\n\nOne `[[licence]]` table for each that the site has some of.\n\n")
	writeRows(&b, licenceRows, valuesOf(&api.Pool{}))
	b.WriteString("\n### Targets of notices\n\nOne `[[notify]]` table each, which `--notify` of jobs names: see notices.md.\n\n")
	writeRows(&b, webhookRows, valuesOf(&Webhook{}))
	b.WriteString(controllerExample)
	b.WriteString("\n## gnoded\n\n")
	writeRows(&b, nodeTable.rows, valuesOf(nodeDefaults()))
	b.WriteString(nodeExample + loginExample)
	return b.String()
}

const referenceHead = `# Configuration

<!-- Made from pkg/controller/config by ` + "`go test ./pkg/controller/config -run Reference -update`" + `; a test holds it current. -->

` + "`gangd --config FILE`" + ` and ` + "`gnoded --config FILE [--name NAME]`" + ` read TOML. A key given with ` + "`--set key=value`" + `
wins over the file, the file over the default. Unknown keys and bad values are refused at start, all of
them at once, with file, line and the nearest valid key. ` + "`gctl reload`" + `, and SIGHUP to a daemon, read the file again: see
"Change the configuration" in operations.md. The column *change* says when a change counts:

| change | |
|---|---|
| live | at once |
| next job | at once; a job that runs may keep what it started with |
| restart | when the daemon is started again, which touches no job |

| type | written |
|---|---|
| duration | ` + "`500ms` `15s` `10m` `1h30m` `2d`" + `; ` + "`off`" + ` is 0. A number without a unit is refused |
| size | ` + "`500MiB` `5GiB` `80G`" + ` or bytes; K, KB and KiB are all 1024 |
| path | absolute; those of unix sockets at most 107 bytes |
| list | ` + "`[\"a\", \"b\"]`" + `; with ` + "`--set`" + `: ` + "`a,b`" + ` |

No key holds a secret: keys and certificates are files in ` + "`state_dir`" + `, made by the daemons with mode 0600.
`

const controllerExample = `
` + "```toml" + `
listen = ":7420"
admins = ["ada"]
lease = "off"
grace = "30s"

[[partition]]
name = "gpu"
default = true
default_time = "1d"

[[partition]]
name = "debug"
nodes = ["n1"]
max_time = "30m"
` + "```" + `
`

const nodeExample = `
` + "```toml" + `
controller = "login1:7420"
features = ["a100", "nvlink"]
min_uid = 1000
socket = "/run/gangd/gangd.sock"
` + "```" + `
`

const loginExample = `
A login host:

` + "```toml" + `
controller = "login1:7420"
login = true
` + "```" + `
`

func writeRows(b *strings.Builder, rows []row, fields map[string]any) {
	b.WriteString("| key | type | default | change | meaning |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		f := reflect.ValueOf(fields[r.key])
		fallback := r.fallback
		if fallback == "" {
			fallback = "`" + asDefault(f) + "`"
			if fallback == "``" {
				fallback = ""
			}
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", r.key, typeName(f), fallback, r.when, r.text)
	}
}

func typeName(f reflect.Value) string {
	switch {
	case f.Kind() == reflect.Pointer:
		return typeName(reflect.Zero(f.Type().Elem()))
	case f.Type() == reflect.TypeFor[time.Duration]():
		return "duration"
	case f.Kind() == reflect.Int64:
		return "size"
	case f.Kind() == reflect.Slice:
		return "list"
	case f.Kind() == reflect.Bool:
		return "true, false"
	case f.Kind() == reflect.String:
		return "string"
	}
	return "number"
}

// asDefault writes a default as a person would in the file.
func asDefault(f reflect.Value) string {
	switch v := f.Interface().(type) {
	case time.Duration:
		if v > 0 && v%time.Minute == 0 {
			return strings.TrimSuffix(v.String(), "0s")
		}
		return v.String()
	case int64:
		if v > 0 && v%(1<<30) == 0 {
			return fmt.Sprintf("%dGiB", v>>30)
		}
		if v > 0 && v%(1<<20) == 0 {
			return fmt.Sprintf("%dMiB", v>>20)
		}
	case []string:
		return ""
	}
	return fmt.Sprint(f.Interface())
}
