//! The key-value store that PMIx offers.

use std::env;
use std::ffi::c_int;
use std::os::fd::OwnedFd;

use super::super::abort::Aborter;
use super::super::hosted::KeyValues;
use super::abi::{self, Process};
use super::claim::{Claim, claim};
use super::library::Library;
use crate::error::{Error, Result};

/// A rank's end of the conversation. The library is initialized as long as it is not finished.
#[derive(Debug)]
pub(in super::super) struct Client {
    library: Library,
    myself: Process,
    size: usize,
    _claim: OwnedFd,
}

/// Why what the environment says is not about this process: its server does not answer, or it is about an ancestor.
#[derive(Debug)]
pub(in super::super) struct Stale {
    pub(in super::super) why: String,
    /// Whether that is beyond doubt.
    pub(in super::super) sure: bool,
}

/// The rank that the environment speaks of, or what it lacks.
pub(in super::super) fn named_in_environment() -> std::result::Result<String, String> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(rank), Some(job)) = (variable("PMIX_RANK"), variable("PMIX_NAMESPACE")) else {
        return Err("PMIX_RANK and PMIX_NAMESPACE are not set".into());
    };
    let server = env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("PMIX_SERVER_URI"));
    if !server {
        return Err(format!("PMIX_RANK={rank} is stale: no PMIX_SERVER_URI is set"));
    }
    Ok(format!("PMIX_RANK={rank}, PMIX_NAMESPACE={job}"))
}

impl Client {
    /// Says hello.
    ///
    /// # Errors
    /// If the library is missing, the server refuses, or another process stands for this rank.
    pub(in super::super) fn connect() -> Result<std::result::Result<Self, Stale>> {
        let variable = |name| env::var(name).unwrap_or_default();
        let claim = match claim(&variable("PMIX_NAMESPACE"), &variable("PMIX_RANK"))? {
            Claim::Ours(claim) => claim,
            Claim::AncestorsOf(rank) => {
                let why = format!("the PMIX_ variables are those of process {rank}, which started this one");
                return Ok(Err(Stale { why, sure: true }));
            }
        };
        let library = Library::load()?;
        let failed = |call: &str, code| failure(&library, call, code);
        let myself = match library.init() {
            Ok(myself) => myself,
            Err(abi::UNREACHABLE) => {
                let why = "the PMIX_ variables are stale: their server does not answer".into();
                return Ok(Err(Stale { why, sure: false }));
            }
            Err(code) => return Err(failed("PMIx_Init", code)),
        };
        let everybody = Process { rank: abi::EVERYBODY, ..myself };
        let size =
            library.get_number(&everybody, abi::JOB_SIZE).map_err(|code| failed("PMIx_Get of the job's size", code))?;
        if myself.rank >= size {
            return Err(Error::Job(format!("PMIx says that this is rank {} of {size}", myself.rank)));
        }
        Ok(Ok(Self { library, myself, size: size as usize, _claim: claim }))
    }

    fn checked(&self, call: &str, code: c_int) -> Result<()> {
        if code == abi::SUCCESS { Ok(()) } else { Err(failure(&self.library, call, code)) }
    }
}

fn failure(library: &Library, call: &str, code: c_int) -> Error {
    Error::Job(format!("{call} failed: {}; the launcher is gone, or ends the job", library.meaning(code)))
}

fn name_of(key: u64) -> String {
    format!("armci.{key}")
}

impl KeyValues for Client {
    fn rank(&self) -> usize {
        self.myself.rank as usize
    }

    fn size(&self) -> usize {
        self.size
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        // Some versions do not carry values without bytes.
        let value = [value, &[0]].concat();
        self.checked("PMIx_Put", self.library.put(&name_of(key), &value))
    }

    fn fence(&mut self) -> Result<()> {
        self.checked("PMIx_Fence", self.library.fence())
    }

    fn get(&mut self, rank: usize, key: u64) -> Result<Vec<u8>> {
        let whose = Process { rank: rank as u32, ..self.myself };
        let mut value = self
            .library
            .get_bytes(&whose, &name_of(key))
            .map_err(|code| failure(&self.library, &format!("PMIx_Get of what rank {rank} put"), code))?;
        value.pop();
        Ok(value)
    }

    fn aborter(&self) -> Aborter {
        let library = self.library;
        Aborter::new(move |code, reason| library.abort(code, reason))
    }

    fn finish(&mut self) -> Result<()> {
        self.checked("PMIx_Finalize", self.library.finalize())
    }
}
