//! What TCP over loopback takes when nothing is above it: two threads, each on its core, pass 8 bytes to and fro and spin
//! on sockets that never block. It is the least that anything built on TCP can take here.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::figure::Figure;
use crate::line::{Cores, pin};
use crate::timing::sample;

/// The round trip of 8 bytes; none where the machine has no loopback.
pub fn round_trip(cores: Cores, samples: usize) -> Option<Figure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let address = listener.local_addr().ok()?;
    std::thread::scope(|scope| {
        scope.spawn(move || -> std::io::Result<()> {
            pin(cores.owner);
            let mut stream = eager(TcpStream::connect(address)?)?;
            // Until the other side hangs up.
            loop {
                receive(&mut stream)?;
                stream.write_all(&[7; 8])?;
            }
        });
        let timed = scope.spawn(move || {
            pin(cores.origin);
            let mut stream = eager(listener.accept()?.0)?;
            sample(5 * samples, 1, || {
                stream.write_all(&[7; 8])?;
                receive(&mut stream)
            })
        });
        timed.join().ok()?.ok()?
    })
}

/// A stream that sends at once, and never blocks. (8 bytes always find room.)
fn eager(stream: TcpStream) -> std::io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn receive(stream: &mut TcpStream) -> std::io::Result<()> {
    let (mut word, mut got) = ([0; 8], 0);
    while got < word.len() {
        match stream.read(&mut word[got..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        let cores = Cores::find().unwrap();
        let figure = round_trip(cores, 5).expect("there is a loopback interface");
        assert!(figure.median > 0.0 && figure.median <= figure.p99);
    }
}
