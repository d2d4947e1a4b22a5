// Command hello stands for the operator where a test needs a small one.
package main

func main() { println("hello") }
