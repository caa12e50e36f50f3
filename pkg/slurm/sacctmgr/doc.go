// Package sacctmgr answers as Slurm's sacctmgr, sshare and sprio do, as far as tools ask.
//
// Purpose: workflow engines look up which accounts a user may name, and whether the site has
// priorities, before they submit. gangd keeps no register of users and accounts: every user of
// the cluster may submit, and may name any account. What is answered is what the jobs of the
// last [look] say: who has used which account.
//
// Invariants: columns, widths, headers and errors are 22.05's. What would change a register
// is refused, because there is none. sprio answers as in a Slurm whose priorities are in order
// of submission (priority/basic), which gangd's are unless somebody changed one.
//
// Begin with Run and tables.go. It must not know the site's configuration or a register of users.
package sacctmgr
