//! A proxy between a member and its server that can be cut: connections stay open, and nothing passes in either direction until
//! it is mended. What was on its way then arrives late, as after a partition.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    gate: Arc<Gate>,
}

struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, is_open: bool) {
        *self.is_open.lock().unwrap() = is_open;
        self.changed.notify_all();
    }

    fn wait(&self) {
        drop(self.changed.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    }
}

impl Proxy {
    /// Its threads end with the connections, or with the tests.
    pub(crate) fn to(server: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gate = Arc::new(Gate { is_open: Mutex::new(true), changed: Condvar::new() });
        let (known, server) = (Arc::clone(&gate), server.to_owned());
        thread::spawn(move || {
            for member in listener.incoming().map_while(Result::ok) {
                let (gate, server) = (Arc::clone(&known), server.clone());
                thread::spawn(move || connect(&gate, member, &server));
            }
        });
        Proxy { address, gate }
    }

    pub(crate) fn cut(&self) {
        self.gate.set(false);
    }

    pub(crate) fn mend(&self) {
        self.gate.set(true);
    }
}

fn connect(gate: &Arc<Gate>, member: TcpStream, server: &str) {
    gate.wait();
    let Ok(server) = TcpStream::connect(server) else { return };
    let (Ok(from), Ok(to)) = (server.try_clone(), member.try_clone()) else { return };
    let known = Arc::clone(gate);
    thread::spawn(move || forward(&known, from, to));
    forward(gate, member, server);
}

fn forward(gate: &Gate, mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 * 1024];
    loop {
        let read = from.read(&mut bytes).unwrap_or(0);
        gate.wait();
        if read == 0 || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    for end in [&from, &to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}
