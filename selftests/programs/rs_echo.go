// SPDX-License-Identifier: GPL-2.0-only

// As rs_echo.c, in Go: serve PORT, or talk HOST PORT BYTES; or look, at the protocol of a listener.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
)

const piece = 65536

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(port string) {
	listener, err := net.Listen("tcp4", ":"+port)
	check(err)
	for {
		client, err := listener.Accept()
		check(err)
		go func() {
			io.Copy(client, client)
			client.Close()
		}()
	}
}

func talk(host, port string, total int) {
	server, err := net.Dial("tcp4", net.JoinHostPort(host, port))
	check(err)
	out, in := make([]byte, piece), make([]byte, piece)
	done := 0
	for ; done < total; done += piece {
		for i := range out {
			out[i] = byte(done>>16 + i*31)
		}
		_, err = server.Write(out)
		check(err)
		_, err = io.ReadFull(server, in)
		check(err)
		if !bytes.Equal(in, out) {
			check(fmt.Errorf("what came back is something else"))
		}
	}
	fmt.Println(done, "bytes came back")
}

func look() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	raw, err := listener.(*net.TCPListener).SyscallConn()
	check(err)
	err = raw.Control(func(fd uintptr) {
		number, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PROTOCOL)
		check(err)
		fmt.Printf("protocol=%d\n", number)
	})
	check(err)
}

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "look":
		look()
	case len(os.Args) == 3 && os.Args[1] == "serve":
		serve(os.Args[2])
	case len(os.Args) == 5 && os.Args[1] == "talk":
		total, err := strconv.Atoi(os.Args[4])
		check(err)
		talk(os.Args[2], os.Args[3], total)
	default:
		check(fmt.Errorf("usage: rs_echo_go serve PORT|talk HOST PORT BYTES|look"))
	}
}
