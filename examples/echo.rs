// SPDX-License-Identifier: GPL-2.0-only
//! A client of an echo server: echo ADDRESS PORT
//!
//! The standard library makes TCP sockets only, but takes any other; the crates socket2 and
//! libc have socket() and connect(), too.
use std::io::{Error, Read, Result, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::raw::{c_int, c_void};
use std::os::unix::io::FromRawFd;

const AF_INET: c_int = 2;
const SOCK_STREAM: c_int = 1;
const SOCK_CLOEXEC: c_int = 0o2000000;
const IPPROTO_RDMASTREAM: c_int = 257;

#[repr(C)]
struct SockaddrIn {
    family: u16,
    port: u16,
    addr: [u8; 4],
    zero: [u8; 8],
}

extern "C" {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn connect(fd: c_int, addr: *const c_void, len: u32) -> c_int;
}

fn dial(to: SocketAddrV4) -> Result<TcpStream> {
    let addr = SockaddrIn {
        family: AF_INET as u16,
        port: to.port().to_be(),
        addr: to.ip().octets(),
        zero: [0; 8],
    };
    let fd = unsafe { socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_RDMASTREAM) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    let stream = unsafe { TcpStream::from_raw_fd(fd) };
    let len = std::mem::size_of_val(&addr) as u32;
    match unsafe { connect(fd, &addr as *const _ as *const c_void, len) } {
        0 => Ok(stream),
        _ => Err(Error::last_os_error()),
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let to = format!("{}:{}", args[1], args[2]).parse().expect("an address and a port");
    let mut stream = dial(to)?;
    let mut total = 0;
    for n in 0..64 {
        let block = vec![n as u8; 65536];
        let mut reply = vec![0; block.len()];
        stream.write_all(&block)?;
        stream.read_exact(&mut reply)?;
        assert!(block == reply, "other bytes came back");
        total += block.len();
    }
    println!("{} bytes came back", total);
    Ok(())
}
