//! What an agent hears over the remote shell, before anything else: whom to call back, the secret, and what to run.
//!
//! Guaranteed: exactly the call is read from standard input, which belongs to rank 0 from there on. What goes this way is
//! not seen in any list of processes. Its beginning, up to the secret, is read by agents of every version, so that one of
//! another version calls back, and the launcher can say so.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::retry_on_intr;

use super::super::super::network::proof::Secret;
use super::super::super::wire::{self, Frame, Frames, Kind, Reader, Words};
use crate::error::{Error, Result};

/// What is told to an agent.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// Where the launcher listens; tried in turn.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) secret: Secret,
    /// Which host of the list this is.
    pub(super) host: usize,
    /// A [`Plan`], if both are of one version.
    pub(super) plan: Vec<u8>,
}

/// What is to be run. Read only by an agent of the same version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) directory: PathBuf,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) bound: bool,
    pub(super) tagged: bool,
    pub(super) by_line: bool,
    pub(super) no_input: bool,
}

impl Call {
    /// The bytes for the remote shell.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut words = Words::default();
        words.number(self.addresses.len() as u64);
        for address in &self.addresses {
            words.bytes(address.ip().to_string().as_bytes());
            words.number(address.port().into());
        }
        words.number(self.secret.0[0]);
        words.number(self.secret.0[1]);
        words.number(self.host as u64);
        words.bytes(&self.plan);
        Frame::encode(Kind::Call, &words.0)
    }

    /// Reads it, and not a byte more.
    ///
    /// # Errors
    /// If this is no call: the program was started by hand, or by something that lets nothing through.
    pub(super) fn read(input: BorrowedFd<'_>) -> Result<Self> {
        let mut frames = Frames::default();
        let mut bytes = vec![0; wire::HEADER];
        read_exact(input, &mut bytes)?;
        frames.push(&bytes);
        let length = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
        // Refuses what is no frame of ours, before so much is read.
        let mut frame = frames.next().map_err(|_| no_call())?;
        if frame.is_none() {
            let mut payload = vec![0; length];
            read_exact(input, &mut payload)?;
            frames.push(&payload);
            frame = frames.next().map_err(|_| no_call())?;
        }
        let frame = frame.filter(|frame| frame.kind == Kind::Call).ok_or_else(no_call)?;
        Self::decode(&frame.payload).ok_or_else(no_call)
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let mut words = Reader(payload);
        let mut addresses = Vec::new();
        for _ in 0..words.number()? {
            let address: IpAddr = std::str::from_utf8(words.bytes()?).ok()?.parse().ok()?;
            addresses.push(SocketAddr::new(address, words.number()?.try_into().ok()?));
        }
        let secret = Secret([words.number()?, words.number()?]);
        let host = words.number()? as usize;
        let plan = words.bytes()?.to_vec();
        words.0.is_empty().then_some(Self { addresses, secret, host, plan })
    }
}

impl Plan {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut words = Words::default();
        words.bytes(self.directory.as_os_str().as_bytes());
        words.bytes(self.program.as_bytes());
        words.number(self.args.len() as u64);
        self.args.iter().for_each(|arg| words.bytes(arg.as_bytes()));
        words.number(self.env.len() as u64);
        for (name, value) in &self.env {
            words.bytes(name.as_bytes());
            words.bytes(value.as_bytes());
        }
        for flag in [self.bound, self.tagged, self.by_line, self.no_input] {
            words.number(flag.into());
        }
        words.0
    }

    /// Nothing, if it is of another version.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = Reader(bytes);
        let directory = words.text()?.into();
        let program = words.text()?;
        let mut args = Vec::new();
        for _ in 0..words.number()? {
            args.push(words.text()?);
        }
        let mut env = Vec::new();
        for _ in 0..words.number()? {
            env.push((words.text()?, words.text()?));
        }
        let mut flag = || words.number().map(|flag| flag != 0);
        let [bound, tagged, by_line, no_input] = [flag()?, flag()?, flag()?, flag()?];
        words.0.is_empty().then_some(Self { directory, program, args, env, bound, tagged, by_line, no_input })
    }
}

pub(super) fn no_call() -> Error {
    Error::Job(
        "what came on standard input is no call of a launcher: agents are started by armci-run --hosts, whose remote shell \
         must let standard input through"
            .into(),
    )
}

fn read_exact(input: BorrowedFd<'_>, mut bytes: &mut [u8]) -> Result<()> {
    while !bytes.is_empty() {
        match retry_on_intr(|| rustix::io::read(input, &mut *bytes)) {
            Ok(0) => return Err(no_call()),
            Ok(length) => bytes = &mut bytes[length..],
            Err(errno) => return Err(Error::system("read of standard input", errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStringExt;

    fn plan() -> Plan {
        Plan {
            directory: "/some where".into(),
            program: "prog".into(),
            args: vec!["-n".into(), OsString::from_vec(vec![0xff, b'\n'])],
            env: vec![("A".into(), "b=c".into())],
            bound: true,
            tagged: false,
            by_line: true,
            no_input: false,
        }
    }

    fn call() -> Call {
        let addresses = vec!["10.0.0.1:7".parse().unwrap(), "[fd00::1]:8".parse().unwrap()];
        Call { addresses, secret: Secret([3, 4]), host: 1, plan: plan().encode() }
    }

    #[test]
    fn a_call_is_read_to_its_last_byte_and_no_further() {
        let (reader, writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut { writer }, &[&call().encode()[..], b"for rank 0"].concat()).unwrap();
        let read = Call::read(reader.as_fd()).unwrap();
        assert!(read == call());
        assert_eq!(Plan::decode(&read.plan), Some(plan()));
        assert_eq!(std::io::read_to_string(reader).unwrap(), "for rank 0");
    }

    #[test]
    fn a_plan_of_another_version_is_none() {
        let good = plan().encode();
        for length in 0..good.len() {
            assert_eq!(Plan::decode(&good[..length]), None);
        }
        assert_eq!(Plan::decode(&[&good[..], b"x"].concat()), None);
    }

    #[test]
    fn what_is_no_call_is_refused() {
        let good = call().encode();
        let other = Frame::encode(Kind::Start, b"");
        let long = [&(Kind::Call as u32).to_le_bytes()[..], &u32::MAX.to_le_bytes(), b"x"].concat();
        let more = Frame::encode(Kind::Call, &[&good[wire::HEADER..], b"x"].concat());
        for bad in [&b""[..], b"ls -l\n", &good[..good.len() - 1], &other, &long, &more] {
            let (reader, writer) = std::io::pipe().unwrap();
            std::io::Write::write_all(&mut { writer }, bad).unwrap();
            let error = Call::read(reader.as_fd()).err().unwrap().to_string();
            assert!(error.contains("no call of a launcher"), "{error}");
        }
    }
}
