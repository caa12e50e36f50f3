// Command nothing does nothing: what starting it takes is what starting any Go program takes.
package main

func main() {}
