//! The header of NumPy's `.npy` files: what elements follow, in which shape and order.
//!
//! A file is the magic string, a version, the length of the header, the header (a literal of a Python dictionary, padded
//! so that the elements are aligned), and the elements. We write version 1.0, which has room for any shape, and read
//! 1.0 to 3.0.

use std::io::{Error, ErrorKind, Read, Result};

use armci_core::ElementKind;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Elements begin at a multiple of this.
const ALIGN: usize = 64;
/// No header of an array of few dimensions is nearly as long.
const LONGEST: usize = 1 << 16;
const ORDER: char = if cfg!(target_endian = "little") { '<' } else { '>' };

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) descr: String,
    /// Whether the first axis is contiguous, and not the last.
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
    /// Where the elements begin.
    pub(crate) data: u64,
}

/// NumPy's name of an element type, in this machine's byte order.
pub(crate) fn descr(kind: ElementKind) -> String {
    let name = match kind {
        ElementKind::I32 => "i4",
        ElementKind::I64 => "i8",
        ElementKind::F32 => "f4",
        ElementKind::F64 => "f8",
        ElementKind::C32 => "c8",
        ElementKind::C64 => "c16",
    };
    format!("{ORDER}{name}")
}

/// The header of a file of elements of this kind, last axis contiguous.
pub(crate) fn header(kind: ElementKind, shape: &[usize]) -> Vec<u8> {
    let lengths: String = shape.iter().map(|len| format!("{len}, ")).collect();
    // A tuple of one needs its comma; of more, none at the end.
    let lengths = if shape.len() == 1 { lengths.trim_end() } else { lengths.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({lengths}), }}", descr(kind));
    let begun = MAGIC.len() + 4;
    let padded = (begun + text.len() + 1).next_multiple_of(ALIGN) - begun;
    text.push_str(&" ".repeat(padded - 1 - text.len()));
    text.push('\n');
    let len = u16::try_from(text.len()).expect("seven lengths take less than 200 characters");
    [MAGIC, &[1, 0][..], &len.to_le_bytes(), text.as_bytes()].concat()
}

impl Header {
    /// Reads the header of a file.
    pub(crate) fn read(file: &mut impl Read) -> Result<Self> {
        let mut start = [0; 8];
        file.read_exact(&mut start).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => bad("it is no .npy file: it ends within the first 8 bytes"),
            _ => error,
        })?;
        if &start[..6] != MAGIC {
            return Err(bad("it is no .npy file: it does not begin with \\x93NUMPY"));
        }
        let (len, begun) = match start[6] {
            1 => {
                let mut len = [0; 2];
                file.read_exact(&mut len)?;
                (usize::from(u16::from_le_bytes(len)), 10)
            }
            2 | 3 => {
                let mut len = [0; 4];
                file.read_exact(&mut len)?;
                (u32::from_le_bytes(len) as usize, 12)
            }
            other => return Err(bad(&format!("it is of version {other} of the .npy format, which is not known"))),
        };
        if len > LONGEST {
            return Err(bad(&format!("its header claims to have {len} bytes")));
        }
        let mut text = vec![0; len];
        file.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(|_| bad("its header is no text"))?;
        let (descr, fortran, shape) =
            parse(&text).ok_or_else(|| bad(&format!("its header is not understood: {}", text.trim())))?;
        Ok(Header { descr, fortran, shape, data: (begun + len) as u64 })
    }
}

fn bad(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, why.to_owned())
}

/// The three entries of the dictionary, which come in any order.
fn parse(text: &str) -> Option<(String, bool, Vec<usize>)> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    while !rest.is_empty() {
        let (key, after) = quoted(rest)?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let after = match key {
            "descr" => {
                // Anything but a string is a record of several fields.
                let (value, after) = quoted(value)?;
                descr = Some(value.to_owned());
                after
            }
            "fortran_order" => {
                let named = [("True", true), ("False", false)];
                let (name, value_is) = named.into_iter().find(|(name, _)| value.starts_with(name))?;
                fortran = Some(value_is);
                &value[name.len()..]
            }
            "shape" => {
                let (inside, after) = value.strip_prefix('(')?.split_once(')')?;
                let lengths = inside.split(',').map(str::trim).filter(|len| !len.is_empty());
                shape = Some(lengths.map(|len| len.trim_end_matches('L').parse().ok()).collect::<Option<_>>()?);
                after
            }
            _ => return None,
        };
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some((descr?, fortran?, shape?))
}

/// A string in quotes, and what is behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    text[1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written() {
        for shape in [&[3][..], &[0], &[100, 7], &[1, 2, 3, 4, 5, 6, 7], &[usize::MAX; 7]] {
            for kind in ElementKind::ALL {
                let bytes = header(kind, shape);
                assert_eq!(bytes.len() % ALIGN, 0);
                let read = Header::read(&mut &bytes[..]).unwrap();
                let wanted =
                    Header { descr: descr(kind), fortran: false, shape: shape.to_vec(), data: bytes.len() as u64 };
                assert_eq!(read, wanted);
            }
        }
    }

    #[test]
    fn headers_of_other_writers_are_understood() {
        let read = |text: &str| parse(text);
        let wanted = Some((">f8".to_owned(), true, vec![3, 4]));
        assert_eq!(read("{\"shape\":(3,4),'descr':'>f8','fortran_order':True}   \n"), wanted);
        assert_eq!(read("{'descr': '<i4', 'fortran_order': False, 'shape': (), }").unwrap().2, [0usize; 0]);
        assert_eq!(read("{'descr': '<i4', 'fortran_order': False, 'shape': (7L,), }").unwrap().2, [7]);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for text in [
            "",
            "{",
            "{}",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '<f8', 'fortran_order': 0, 'shape': (1,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1, }",
            "{'descr': '<f8', 'fortran_order': False 'shape': (1,), }",
            "{'descr': '<f8', 'fortran_order': False, 'more': 1, 'shape': (1,), }",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let good = header(ElementKind::F64, &[2, 3]);
        for cut in [0, 5, 8, 9, 20, good.len() - 1] {
            assert!(Header::read(&mut &good[..cut]).is_err(), "{cut}");
        }
        let mut other = good.clone();
        other[6] = 9;
        assert!(Header::read(&mut &other[..]).is_err());
        other[6..12].copy_from_slice(&[2, 0, 255, 255, 255, 255]);
        assert!(Header::read(&mut &other[..]).is_err());
    }
}
