//! The input as text, read once: by the process the user started, which hands it on to rank 0 of
//! its own ranks, so that a pipe can be the molecule. A launched rank 0 reads the files itself.

use std::io::{PipeReader, Write as _};
use std::os::fd::AsRawFd as _;

use crate::basis::BasisText;
use crate::cli::InputText;
use crate::error::{Result, ScfError};

/// The environment variable that tells rank 0 where to read what it is handed.
pub const VARIABLE: &str = "SCF_INPUT";

/// A text on its way to rank 0: a pipe that a thread fills. Rank 0 opens it by its path.
pub struct Handed {
    reader: PipeReader,
}

impl Handed {
    /// Offers the text to one reader.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new(input: &InputText) -> Result<Self> {
        let (reader, mut writer) =
            std::io::pipe().map_err(|source| ScfError::Read { path: "the input's pipe".into(), source })?;
        let text = serde_json::json!([input.molecule, input.basis.name, input.basis.text]).to_string();
        // If nobody reads, the thread waits; it ends with the program.
        std::thread::spawn(move || writer.write_all(text.as_bytes()));
        Ok(Self { reader })
    }

    /// Where rank 0 finds it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.reader.as_raw_fd())
    }
}

/// What rank 0 was handed, if anything.
///
/// # Errors
/// It cannot be read.
pub fn handed() -> Result<Option<InputText>> {
    let Some(path) = std::env::var_os(VARIABLE) else { return Ok(None) };
    let fail = |source| ScfError::Read { path: path.clone().into(), source };
    let text = std::fs::read(&path).map_err(fail)?;
    let [molecule, name, text] = serde_json::from_slice::<[String; 3]>(&text).map_err(|error| fail(error.into()))?;
    Ok(Some(InputText { molecule, basis: BasisText { name, text } }))
}
