//! Reading text for people: files, words with their columns, numbers.

use std::path::Path;

use crate::error::{Result, ScfError};

/// A file's text. What is not UTF-8 (a comment in Latin-1) becomes replacement characters; a
/// byte order mark is left out.
///
/// # Errors
/// The file is unreadable.
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|source| ScfError::Read { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned())
}

/// A finite number; Fortran's `1.0D+00` is one.
pub fn parse_real(word: &str) -> Option<f64> {
    let number: f64 = word.replace(['d', 'D'], "e").parse().ok()?;
    number.is_finite().then_some(number)
}

/// Words of a line with their one-based columns, in characters.
pub fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_whitespace().map(move |word| {
        // `word` is a slice of `line`, so the difference of their starts is its byte offset.
        let offset = word.as_ptr() as usize - line.as_ptr() as usize;
        (line[..offset].chars().count() + 1, word)
    })
}
