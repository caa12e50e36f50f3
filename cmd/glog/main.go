// Command glog prints the output of a job; see man/glog.1.
package main

import "gangd/pkg/client/cli"

func main() { cli.Main(cli.NewGlog()) }
