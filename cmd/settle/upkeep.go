package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle/sqlite"
)

// newMigrateCmd brings the schema up to date.
func newMigrateCmd(a *app) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "bring the database's schema up to date",
		Long: `Bring the database's schema up to date, one transaction for each step. Steps only
add: the previous version of settle can still run on the new schema. Several
processes may do this at once. Workers and enqueue do it by themselves.`,
		Example: `  settle migrate --dry-run
  settle migrate --db /var/lib/app/settle.db`,
		Args: wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.look(true); err != nil {
				return err
			}
			sql, err := sqlite.Migrate(c.Context(), a.db, dry)
			switch {
			case err != nil:
				return err
			case sql == "":
				fmt.Fprintln(a.out, "the schema is up to date")
			case dry:
				fmt.Fprintln(a.out, sql)
			default:
				fmt.Fprintln(a.out, "the schema has been brought up to date")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "print the SQL that would run, and change nothing")
	return c
}

// versionJSON is the answer of version --json.
type versionJSON struct {
	Version string `json:"version"`
	Schema  int    `json:"schema"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// newVersionCmd says which program this is.
func newVersionCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "say which version this is, and which schema it writes",
		Example: `  settle version --json`,
		Args:    wantArgs(0, 0, "no words, only flags"),
		RunE: func(*cobra.Command, []string) error {
			v := versionJSON{moduleVersion(), sqlite.SchemaVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			if a.json {
				return writeJSON(a.out, v)
			}
			_, err := fmt.Fprintln(a.out, versionText())
			return err
		},
	}
	a.jsonFlag(c)
	return c
}

// versionText is the version for people.
func versionText() string {
	return fmt.Sprintf("settle %s (schema %d, %s, %s/%s)", moduleVersion(), sqlite.SchemaVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// moduleVersion reads the version that the Go tool wrote into the program.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
