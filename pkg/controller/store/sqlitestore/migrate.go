package sqlitestore

import (
	"embed"
	"fmt"

	"gangd/pkg/controller/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks a file as gangd's own ("gang" in ASCII), so that another program's
// database is never migrated.
const applicationID = 0x67616e67

// migrate brings the schema up to date, one transaction a migration: a crash between two
// leaves a file that the next start continues with.
func migrate(w *writer, name string, texts []string, progress func()) error {
	head, err := w.Ints("SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), "+
		"(SELECT count(*) FROM sqlite_schema)", 3)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	version, app, objects := int(head[0]), head[1], head[2]
	if app != applicationID && (app != 0 || objects != 0) {
		return fmt.Errorf("%s is a database of another program (application id %#x, gangd's is %#x)", name, app, applicationID)
	}
	if version > len(texts) {
		return fmt.Errorf("%s has schema %d, this gangd knows schemas up to %d; start the gangd that wrote it or restore a backup made before "+
			"the upgrade: %w",
			name, version, len(texts), store.ErrNewerSchema)
	}
	for n := version + 1; n <= len(texts); n++ {
		progress()
		text := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", texts[n-1], applicationID, n)
		if err := w.exec(text); err != nil {
			return fmt.Errorf("%s: migration to schema %d: %w", name, n, err)
		}
	}
	return nil
}
