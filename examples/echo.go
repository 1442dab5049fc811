// SPDX-License-Identifier: GPL-2.0-only

// A client of an echo server: echo ADDRESS PORT
//
// The net package knows no other protocol, but it takes any socket.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"syscall"
)

const ipprotoRdmastream = 257

func dial(to netip.AddrPort) (net.Conn, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, ipprotoRdmastream)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "rdmastream")
	defer file.Close() // the connection has a descriptor of its own
	err = syscall.Connect(fd, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
	if err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(file)
}

func main() {
	conn, err := dial(netip.MustParseAddrPort(os.Args[1] + ":" + os.Args[2]))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	total := 0
	for n := 0; n < 64; n++ {
		block := bytes.Repeat([]byte{byte(n)}, 65536)
		go conn.Write(block)
		reply := make([]byte, len(block))
		if _, err := io.ReadFull(conn, reply); err != nil {
			log.Fatal(err)
		}
		if !bytes.Equal(block, reply) {
			log.Fatal("other bytes came back")
		}
		total += len(block)
	}
	fmt.Println(total, "bytes came back")
}
